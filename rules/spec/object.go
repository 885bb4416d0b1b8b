package spec

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation"
)

// What drydock-bridge writes into objects.
const (
	// Bridge is its field manager, and begins the names under which bridges hold leases.
	Bridge = "drydock-bridge"
	// ObjectFinalizer keeps an object until its workflow has ended what it has begun.
	ObjectFinalizer = "drydock.dev/maintenance"
	// RunAnnotation is, in the object of another system, the object's UID and the first run of its workflow.
	RunAnnotation = "drydock.dev/run"
)

// Object is the Kubernetes object that asked for a workflow. The bridge starts such workflows, and shows them in the object.
type Object struct {
	// Resource is what it is, as kubectl has it, such as `nodemaintenances.drydock.dev`.
	Resource string `json:"resource" jsonschema:"required"`
	// Namespace is the namespace that it is in, empty if it is in none.
	Namespace string `json:"namespace,omitempty"`
	// Name is its name.
	Name string `json:"name" jsonschema:"required"`
	// UID tells it from one of the same name that came before it or comes after it.
	UID string `json:"uid" jsonschema:"required"`
	// RequestedBy is the Kubernetes user who created it, where the API server is set up to know.
	RequestedBy string `json:"requestedBy,omitempty"`
	// Cordoned says that another system made the node unschedulable for the object. The cordon that is found on the node is then the
	// maintenance's, and is lifted at its end.
	Cordoned bool `json:"cordoned,omitempty"`
}

// LeavesCordon reports whether a cordon that is found on the node is the maintenance's. A nil object leaves none.
func (o *Object) LeavesCordon() bool { return o != nil && o.Cordoned }

func (o Object) String() string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	return o.Resource + " " + name
}

// uidPattern are the UIDs that API servers give.
var uidPattern = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// Validate returns what is wrong with it; the error joins one line per wrong field.
func (o Object) Validate() error {
	var p problems
	o.validate(&p)
	return errors.Join(p...)
}

func (o Object) validate(p *problems) {
	p.check("object.resource", objectName(o.Resource))
	p.check("object.name", objectName(o.Name))
	if wrong := validation.IsDNS1123Label(o.Namespace); o.Namespace != "" && len(wrong) > 0 {
		p.add("object.namespace", wrong[0])
	}
	p.text("object.requestedBy", o.RequestedBy)
	if !uidPattern.MatchString(o.UID) {
		p.add("object.uid", fmt.Sprintf("%q is no UID: want 1 to 64 letters, digits and -", o.UID))
	}
}

func objectName(name string) error {
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return errors.New(cmp.Or(name, "empty") + ": " + wrong[0])
	}
	return nil
}
