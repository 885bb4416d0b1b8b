package migration

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"drydock.dev/drydock/rules/spec"
)

// Marked is an object with marks of Drydock's bridge.
type Marked struct {
	Kind              schema.GroupVersionResource
	Namespace, Name   string
	ResourceVersion   string
	Finalizers        []string
	HasFinalizer, Ran bool
}

func (m Marked) String() string {
	return strings.TrimPrefix(m.Namespace+"/"+m.Name, "/")
}

// Back are the objects that the bridge's marks are to be taken off when a system serves them again. Served says that a bridge still serves
// them, and underWay which nodes it has out of service.
func Back(s System, c Cluster) (all []Marked, served string, underWay []string) {
	if l := c.lease(s.Lease()); l != nil {
		if holder, held := c.holder(l); held && strings.HasPrefix(holder, spec.Bridge+"_") {
			served = fmt.Sprintf("%s holds the lease %s: stop the bridge", holder, named(l))
		}
	}
	for _, kind := range s.Reads() {
		if kind == leases {
			continue
		}
		for i := range c.Objects[kind] {
			o := &c.Objects[kind][i]
			_, ran := o.GetAnnotations()[spec.RunAnnotation]
			m := Marked{
				Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), ResourceVersion: o.GetResourceVersion(), Finalizers: o.GetFinalizers(), Ran: ran,
				HasFinalizer: slices.Contains(o.GetFinalizers(), spec.ObjectFinalizer),
			}
			if m.HasFinalizer || m.Ran {
				all = append(all, m)
			}
		}
	}
	for _, claim := range s.Claims(c) {
		if claim.Out {
			underWay = append(underWay, fmt.Sprintf("%s is %s for %s", claim.Node, claim.State, claim.For))
		}
	}
	return all, served, underWay
}
