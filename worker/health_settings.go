package worker

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	healthactivity "drydock.dev/drydock/activities/health"
	"drydock.dev/drydock/config"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/k8s/nodelease"
	"drydock.dev/drydock/k8s/objects"
)

// healthActivities are the activities of health checks, with the settings that hold for all checks.
func healthActivities(c config.Health, nodes *k8s.Nodes, to connection) *healthactivity.Activities {
	settings := healthactivity.Settings{
		LeaseNamespace: c.LeaseNamespace, IgnoreMachineHealthChecks: c.MachineHealthChecks == config.IgnoreMachineHealthChecks,
	}
	for _, sign := range c.Upgrades {
		settings.Upgrades = append(settings.Upgrades, healthactivity.UpgradeSign{
			APIVersion: sign.APIVersion, Kind: sign.Kind, Namespace: sign.Namespace, Name: sign.Name, Type: sign.Type,
			Status: cmp.Or(sign.Status, string(corev1.ConditionTrue)),
		})
	}
	return &healthactivity.Activities{
		Nodes: nodes, Objects: objects.New(nodes.Client()), Temporal: to.client, Namespace: to.namespace, Home: to.home, Settings: settings,
	}
}

// nodeLeases are the leases of the nodes that health checks remediate.
func nodeLeases(c config.Health, client kube.Interface) *nodelease.Leases {
	return &nodelease.Leases{Objects: objects.New(client), Namespace: c.LeaseNamespace}
}
