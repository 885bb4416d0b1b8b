// Package migration looks at a cluster that another system maintains: what becomes of that system's settings and objects with Drydock, and
// what Drydock would do beside it. It reads what it is given, and changes nothing.
package migration

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/rules/schedule"
)

// System is one that Drydock can take the place of.
type System interface {
	// Reads are the kinds of objects that it goes by, besides nodes.
	Reads() []schema.GroupVersionResource
	// Lease is the name of its operator's lease, empty if it has none that says who serves its objects.
	Lease() string
	// Report says what of it there is, and what becomes of that.
	Report(c Cluster) Report
	// Claims are the nodes that it has out of service, and those that it wants to take out.
	Claims(c Cluster) []Claim
	// Refusals say why Drydock would not take the nodes of some claims out of service now, by Claim.Key; a claim without a reason it would
	// grant. All other claims are as the system has them.
	Refusals(c Cluster, asked []Claim) (map[string]string, error)
}

// Cluster is what was read of a cluster at one moment.
type Cluster struct {
	At    time.Time
	Nodes []corev1.Node
	// Objects are those of the kinds that a system reads. A kind that could not be read is absent, and Unread says why.
	Objects map[schema.GroupVersionResource][]unstructured.Unstructured
	Unread  map[schema.GroupVersionResource]string
}

// Given is what a person says of a migration.
type Given struct {
	// Limits take the place of those that the system's own settings are translated to, each that is set.
	Limits schedule.Limits
	// File is the configuration of a system that has it in a file, and Environment what it is read with.
	File        []byte
	Environment profile.Environment
}

// The systems.
const (
	MaintenanceOperator = "maintenance-operator"
	PIKA                = "pika"
	SAP                 = "sap"
	Medik8s             = "medik8s"
	Kured               = "kured"
	UpgradeController   = "system-upgrade-controller"
)

// The leases of operators. Whoever holds a system's lease serves its objects, the operator or drydock-bridge.
const (
	LeaseOfMaintenanceOperator = "a9620a8f.nvidia.com"
	LeaseOfPIKA                = "a316e27f.nvidia.com"
	LeaseOfMedik8s             = "e1f13584.medik8s.io"
)

// Names are those of all systems.
func Names() []string {
	return []string{MaintenanceOperator, PIKA, SAP, Medik8s, Kured, UpgradeController}
}

// Of is the system of a name.
func Of(name string, given Given) (System, error) {
	switch name {
	case MaintenanceOperator:
		return maintenanceOperator{given}, nil
	case PIKA:
		return pika{given}, nil
	case SAP:
		return sap{given}, nil
	case Medik8s:
		return medik8s{}, nil
	case Kured:
		return kured{given}, nil
	case UpgradeController:
		return upgradeController{given}, nil
	default:
		return nil, fmt.Errorf("%q is none of %s", name, strings.Join(Names(), ", "))
	}
}

// Claim is a node that a system has out of service, or wants to take out.
type Claim struct {
	Node string `json:"node"`
	// For is what it is claimed for: an object, a profile or a lock of the system.
	For string `json:"for"`
	// requestor is who asks, where For is not: the scheduler ranks requestors.
	requestor string
	// Asked is since when, as far as the system says so.
	Asked time.Time `json:"asked,omitzero"`
	// State is the system's word for how it stands. Out: the node is out of service, or about to be.
	State string `json:"state"`
	Out   bool   `json:"out,omitempty"`
	// Becomes is what Drydock makes of it.
	Becomes string `json:"becomes,omitempty"`
}

// Key tells a claim from all others.
func (c Claim) Key() string { return c.Node + " " + c.For }

// Report is what there is of a system, and what becomes of it.
type Report struct {
	From string `json:"from"`
	// Found is what of the system the cluster has.
	Found []string `json:"found"`
	// Problems are to be solved before Drydock takes over.
	Problems []string `json:"problems,omitempty"`
	// Translated are settings with what they become, Without those that Drydock has no equal for, with what it does instead.
	Translated []Setting `json:"translated,omitempty"`
	Without    []Setting `json:"without,omitempty"`
	// Inputs are files for Drydock, made from the settings.
	Inputs []Input `json:"inputs,omitempty"`
	// Claims are the nodes that the system has out of service, and those that it wants to take out.
	Claims []Claim `json:"claims,omitempty"`
	// Take are the steps by which Drydock takes over, and Back those by which the system does again. One that begins with # is for a person,
	// the others are for a shell.
	Take []string `json:"take"`
	Back []string `json:"back"`
}

// Setting is a setting of a system, with its value.
type Setting struct {
	Of    string `json:"of"`
	Value string `json:"value,omitempty"`
	// Becomes is what Drydock has, or does, in its place.
	Becomes string `json:"becomes"`
}

// Input is a file for Drydock.
type Input struct {
	File string `json:"file"`
	Text string `json:"text"`
}

// add adds a setting: to those that have an equal, or to the others.
func (r *Report) add(t translation, of, value string) {
	s := Setting{Of: of, Value: value, Becomes: t.becomes}
	if t.without {
		r.Without = append(r.Without, s)
	} else {
		r.Translated = append(r.Translated, s)
	}
}

// translation is what becomes of a setting. Without: Drydock has no equal.
type translation struct {
	becomes string
	without bool
}

func to(becomes string) translation      { return translation{becomes: becomes} }
func without(instead string) translation { return translation{becomes: instead, without: true} }
