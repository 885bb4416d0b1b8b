package healthwatch

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	activity "drydock/activities/health"
	"drydock/rules/health"
)

// refuse finds out which checks may not run beside others.
func (w *healthwatch) refuse() {
	for _, k := range w.state.Checks {
		k.Refused = ""
	}
	running := slices.DeleteFunc(w.contenders(), func(c health.Contender) bool { return w.find(c.Name).Ghost })
	for _, r := range health.Overlap(running, w.state.Overlaps.Memberships) {
		if k := w.find(r.Check); k != nil {
			k.Refused = r.Why
		}
	}
}

// contenders are the checks, oldest first.
func (c *core) contenders() []health.Contender {
	var all []health.Contender
	for _, k := range c.state.Checks {
		in := k.Intent
		all = append(all, health.Contender{
			Name: in.Name, RunID: in.RunID, CreatedAt: in.CreatedAt, WantPermit: in.WantPermit, HoldPermit: in.HoldPermit, Revision: in.Revision,
			Etcd: in.Etcd != nil,
		})
	}
	return all
}

// permit decides which control-plane node may be remediated, and what each check is to know of it.
func (w *healthwatch) permit() {
	if waits := w.pending(); waits != "" {
		for _, k := range w.state.Checks {
			k.Permit, k.PermitWhy = "", ""
			if len(k.Intent.WantPermit) > 0 {
				k.PermitWhy = waits
			}
		}
		w.WakeAt(w.state.Until, "wait for the word of checks")
		return
	}
	w.state.Answers = slices.DeleteFunc(w.state.Answers, func(p activity.PermitSeen) bool {
		k := w.find(p.Check)
		return k == nil || k.Intent.Etcd == nil || !slices.Contains(k.Intent.WantPermit, p.Node)
	})
	var etcd []health.EtcdState
	refused := ""
	for _, p := range w.state.Answers {
		one := health.EtcdState{Node: p.Node, Budgets: 1, Guard: string(corev1.ConditionTrue)}
		if p.Allowed {
			one.DisruptionsAllowed = 1
		} else {
			refused = cmp.Or(refused, p.Why)
		}
		etcd = append(etcd, one)
	}
	out, why := health.Permit(w.contenders(), w.state.Permit, etcd)
	if out.Node == "" {
		why = cmp.Or(refused, why)
	}
	w.state.Permit = out
	for _, k := range w.state.Checks {
		k.Permit, k.PermitWhy = "", ""
		switch {
		case out.Check == k.Intent.Name && out.RunID == k.Intent.RunID:
			k.Permit = out.Node
			fallthrough
		case len(k.Intent.WantPermit) > 0:
			k.PermitWhy = why
		}
	}
}
