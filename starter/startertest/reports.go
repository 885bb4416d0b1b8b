package startertest

import (
	"time"

	"drydock.dev/drydock/rules/doctor"
	"drydock.dev/drydock/rules/preflight"
)

// SickReport is a doctor's report with findings of several kinds.
func SickReport() doctor.Report {
	return doctor.Report{
		Looked: doctor.Looked{Nodes: 20, Marked: 2, Maintenances: 1, Holders: 2, Pending: 7},
		Findings: []doctor.Finding{
			{
				Kind: doctor.MarkDead, Node: "worker-01", WorkflowID: "node-maintenance/worker-01/ops", RunID: "run-1", Since: Ago(3 * time.Hour),
				Text: "the node is held by a maintenance by ops that does not run (Terminated)", Fix: doctor.ReleaseMark,
			},
			{Kind: doctor.CordonUnowned, Node: "worker-02", Text: "it is cordoned and shows label drydock.dev/phase=Ready", NextStep: "kubectl uncordon worker-02"},
			{
				Kind: doctor.SlotUnknown, Node: "worker-03", WorkflowID: "node-maintenance/worker-03/ops", RunID: "run-3",
				Text: "the maintenance has a slot", Tried: "asked the scheduler for the slot in its name", NextStep: "it is counted as soon as the limits allow it",
			},
		},
		More:  2,
		Notes: []doctor.Finding{{Kind: doctor.CordonByHand, Node: "worker-09", Text: "somebody cordoned it"}, {Kind: doctor.NotChecked, Text: "no\npermission"}},
	}
}

// StoppedReport is a preflight of a node whose drain would be stopped.
func StoppedReport() preflight.Report {
	return preflight.Report{
		Node: "worker-01", Mode: "evict",
		Counts: map[preflight.Action]int{preflight.Evict: 2, preflight.Skip: 1, preflight.Refuse: 1},
		Pods: []preflight.Pod{
			{Pod: "default/bare", Tier: 1, Action: preflight.Refuse, Reason: "NoController", Message: "consent with force"},
			{Pod: "default/db-0", Tier: 1, Action: preflight.Evict, Budgets: []string{"default/db"}},
			{Pod: "kube-system/agent", Action: preflight.Skip, Reason: "DaemonSet", Message: "belongs to a DaemonSet"},
		},
		MorePods: 1,
		Budgets:  []preflight.Budget{{Budget: "default/db", Healthy: 1, Desired: 1, Pods: 1, OnNode: 1, Impossible: true}},
		Room:     &preflight.Room{Nodes: 3, Pods: 2},
		Problems: []preflight.Finding{
			{Code: preflight.MissingConsent, Object: "pod default/bare", Message: "consent with force"},
			{Code: preflight.ImpossibleBudget, Object: "budget default/db", Message: "as it is written it never allows one"},
		},
		Warnings:     []preflight.Finding{{Code: preflight.NodeNotReady, Object: "node worker-01", Message: "it is not Ready"}},
		MoreProblems: 3,
	}
}
