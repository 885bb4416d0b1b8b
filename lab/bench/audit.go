package main

import (
	"strings"
	"time"

	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/witness"
)

// Who is who in the audit log, by user agent.
const (
	theWorker  = "drydock-worker"
	theKubectl = "kubectl"
	// bareAgent are the loops of the bench itself, to compare with.
	bareAgent = "bench-bare"
)

// request is what the audit log tells of an answered request.
type request struct{ devstack.Audited }

func (r request) by(agent string) bool { return strings.HasPrefix(r.UserAgent, agent) }

func (r request) onEvents() bool { return r.Object.Resource == "events" }

func (r request) writes() bool {
	return r.Verb == "create" || r.Verb == "update" || r.Verb == "patch" || r.Verb == "delete"
}

func (r request) evicts() bool {
	return r.Verb == "create" && r.Object.Resource == "pods" && r.Object.Subresource == "eviction"
}

// auditLog is the path of the API server's audit log, empty if there is none.
type auditLog string

// mark is the place in the audit log behind all that has happened so far.
func (l auditLog) mark() (int64, error) {
	time.Sleep(witness.AuditDelay)
	return devstack.AuditEnd(string(l))
}

// each calls visit for each answered request since a mark.
func (l auditLog) each(since int64, visit func(request)) error {
	time.Sleep(witness.AuditDelay)
	return devstack.ReadAudit(string(l), since, func(a devstack.Audited) {
		if a.Answered() {
			visit(request{a})
		}
	})
}

// requests counts an agent's requests since a mark, watches apart; events are counted on their own.
func (l auditLog) requests(agent string, since int64) (others, events int) {
	noError(l.each(since, func(r request) {
		switch {
		case !r.by(agent) || r.Verb == "watch":
		case r.onEvents():
			events++
		default:
			others++
		}
	}))
	return others, events
}
