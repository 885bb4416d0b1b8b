package main

import (
	"fmt"
	"slices"
	"strings"
)

// issuer is the service account token issuer every real cluster uses by default.
const issuer = "https://kubernetes.default.svc.cluster.local"

// auditPolicyYAML records every request once it is answered: who, what, the
// verb, URI, user agent and response code.
const auditPolicyYAML = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

func etcdArgs(l layout, p *pki, ports *clusterPorts) []string {
	return []string{
		"--name=devcluster",
		"--data-dir=" + l.etcdData(),
		"--listen-client-urls=" + ports.etcdClient.url(),
		"--advertise-client-urls=" + ports.etcdClient.url(),
		"--listen-peer-urls=" + ports.etcdPeer.url(),
		"--initial-advertise-peer-urls=" + ports.etcdPeer.url(),
		"--initial-cluster=devcluster=" + ports.etcdPeer.url(),
		"--socket-reuse-port=true",
		"--cert-file=" + p.servingCert(), "--key-file=" + p.servingKey(),
		"--trusted-ca-file=" + p.caFile(), "--client-cert-auth=true",
		"--peer-cert-file=" + p.servingCert(), "--peer-key-file=" + p.servingKey(),
		"--peer-trusted-ca-file=" + p.caFile(), "--peer-client-cert-auth=true",
		"--quota-backend-bytes=4294967296",
		"--log-level=warn",
		// A crash of this process loses nothing, a crash of the machine may:
		// the right trade for a cluster that lives for one test.
		"--unsafe-no-fsync=true",
	}
}

func apiServerArgs(o upOptions, l layout, p *pki, ports *clusterPorts) []string {
	args := []string{
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		"--endpoint-reconciler-type=none", // a loopback address cannot be an Endpoint
		"--secure-port=" + ports.apiServer.String(),
		"--permit-port-sharing=true",
		"--etcd-servers=" + ports.etcdClient.url(),
		"--etcd-cafile=" + p.caFile(), "--etcd-certfile=" + p.etcdClientCert(), "--etcd-keyfile=" + p.etcdClientKey(),
		"--tls-cert-file=" + p.servingCert(), "--tls-private-key-file=" + p.servingKey(),
		"--client-ca-file=" + p.caFile(),
		"--authorization-mode=Node,RBAC",
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + p.serviceAccountPublicKey(),
		"--service-account-signing-key-file=" + p.serviceAccountKey(),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--allow-privileged=true",
		// Five times the defaults: a test should meet its own limits, not these.
		"--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000",
	}
	if o.auditLog != "" {
		args = append(args,
			"--audit-policy-file="+l.auditPolicy(),
			"--audit-log-path="+o.auditLog,
			"--audit-log-maxsize=0", // one file, so that a reader misses nothing
		)
	}
	if o.runtimeConfig != "" {
		args = append(args, "--runtime-config="+o.runtimeConfig)
	}
	return append(args, featureGateArgs(o)...)
}

func controllerManagerArgs(o upOptions, l layout, p *pki, ports *clusterPorts) []string {
	return slices.Concat(controllerArgs(l, p, controllerManagerName, ports.controllerManager), []string{
		"--root-ca-file=" + p.caFile(),
		"--service-account-private-key-file=" + p.serviceAccountKey(),
	}, featureGateArgs(o))
}

func schedulerArgs(o upOptions, l layout, p *pki, ports *clusterPorts) []string {
	args := append(controllerArgs(l, p, schedulerName, ports.scheduler), featureGateArgs(o)...)
	if o.packNodes {
		args = append(args, "--config="+l.packing())
	}
	return args
}

// packingYAML has kube-scheduler fill nodes up, in place of its default, which prefers empty ones. With a file of its own it reads the
// connection from there.
func packingYAML(l layout) []byte {
	return fmt.Appendf(nil, `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q, qps: 2000, burst: 4000}
leaderElection: {leaderElect: false}
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]}}
  plugins:
    score:
      disabled: [{name: NodeResourcesFit}, {name: NodeResourcesBalancedAllocation}]
      enabled: [{name: NodeResourcesFit, weight: 10}]
`, l.componentKubeconfig(schedulerName))
}

// controllerArgs are the flags that the controller manager and the scheduler share.
func controllerArgs(l layout, p *pki, name string, port *reservedPort) []string {
	return []string{
		"--kubeconfig=" + l.componentKubeconfig(name),
		"--bind-address=" + loopback,
		"--secure-port=" + port.String(),
		"--permit-port-sharing=true",
		"--tls-cert-file=" + p.servingCert(), "--tls-private-key-file=" + p.servingKey(),
		"--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
		"--leader-elect=false",
		"--kube-api-qps=2000", "--kube-api-burst=4000",
	}
}

// featureGateArgs go to all Kubernetes components alike, as gates of a feature
// usually belong to several of them.
func featureGateArgs(o upOptions) []string {
	if strings.TrimSpace(o.featureGates) == "" {
		return nil
	}
	return []string{"--feature-gates=" + o.featureGates}
}
