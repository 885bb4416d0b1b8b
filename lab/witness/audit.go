package witness

import (
	"strings"
	"time"

	"drydock.dev/drydock/deploy/devstack"
)

// AuditDelay is how much later than its answer a request may be on record.
const AuditDelay = 300 * time.Millisecond

// worker is how the user agent of a worker begins.
const worker = "drydock-worker"

// EndedPods are the requests of workers to end a pod of a namespace that an API server accepted, since a place in its audit log.
func EndedPods(audit string, since int64, namespace string) (found []devstack.Audited, err error) {
	time.Sleep(AuditDelay)
	err = devstack.ReadAudit(audit, since, func(a devstack.Audited) {
		if a.Answered() && strings.HasPrefix(a.UserAgent, worker) && endsPod(a) {
			found = append(found, a)
		}
	}, `"namespace":"`+namespace+`"`, `"resource":"pods"`, worker)
	return found, err
}

// Created are the names of the objects of a resource in a namespace that workers have created, since a place in an audit log.
func Created(audit string, since int64, namespace, resource string) (names []string, err error) {
	time.Sleep(AuditDelay)
	err = devstack.ReadAudit(audit, since, func(a devstack.Audited) {
		if a.Answered() && strings.HasPrefix(a.UserAgent, worker) && a.Verb == "create" && a.Object.Resource == resource && a.Status.Code < 300 {
			names = append(names, a.Object.Name)
		}
	}, `"namespace":"`+namespace+`"`, `"resource":"`+resource+`"`, worker)
	return names, err
}

// endsPod reports whether a request evicts or deletes a pod, and was accepted.
func endsPod(a devstack.Audited) bool {
	return a.Object.Resource == "pods" && a.Status.Code < 300 &&
		(a.Verb == "create" && a.Object.Subresource == "eviction" || a.Verb == "delete" && a.Object.Subresource == "")
}
