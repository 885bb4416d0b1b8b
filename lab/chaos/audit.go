package main

import (
	"strings"
	"time"

	"drydock.dev/drydock/deploy/devstack"
)

// auditDelay is how much later than its answer a request may be on record.
const auditDelay = 300 * time.Millisecond

// endsPod tells that a request evicts or deletes a pod, and was accepted.
func endsPod(a devstack.Audited) bool {
	return a.Object.Resource == "pods" && a.Status.Code < 300 &&
		(a.Verb == "create" && a.Object.Subresource == "eviction" || a.Verb == "delete" && a.Object.Subresource == "")
}

// ended are the accepted requests of workers to end a pod of a namespace, since a place in the audit log.
func (s *stack) ended(since int64, namespace string) (found []devstack.Audited, err error) {
	time.Sleep(auditDelay)
	err = devstack.ReadAudit(s.audit, since, func(a devstack.Audited) {
		if a.Answered() && strings.HasPrefix(a.UserAgent, "drydock-worker") && endsPod(a) {
			found = append(found, a)
		}
	}, `"namespace":"`+namespace+`"`, `"resource":"pods"`)
	return found, err
}
