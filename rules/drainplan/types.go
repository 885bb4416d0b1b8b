package drainplan

import (
	"math"
	"strconv"
)

// PodType says which kind of pods an entry selects.
type PodType string

const (
	// Default are all pods but those of DaemonSets and static ones.
	Default PodType = "Default"
	// DaemonSet are the pods of DaemonSets.
	DaemonSet PodType = "DaemonSet"
	// Static are the pods that the kubelet runs from its own manifests.
	Static PodType = "Static"
)

// Types are all pod types, in the order in which they leave.
func Types() []PodType { return []PodType{Default, DaemonSet, Static} }

// Entry selects the pods of one tier, and in a drain target the pods that are to leave.
type Entry struct {
	// PodType is the type of the pods of the tier.
	PodType PodType `json:"podType" jsonschema:"enum=Default,enum=DaemonSet,enum=Static,default=Default"`
	// PodPriority is the priority of the pods of the tier, which also has those of less.
	PodPriority int32 `json:"podPriority" jsonschema:"required,minimum=-2147483648,maximum=2147483647"`
	// PodSelector is a label selector, as text or as an object. The empty one selects all pods.
	PodSelector string `json:"podSelector,omitempty"`
}

// UpTo is the priority of the pods in words; empty if they are those of every priority.
func (e Entry) UpTo() string {
	if e.PodPriority == math.MaxInt32 {
		return ""
	}
	return " up to priority " + strconv.Itoa(int(e.PodPriority))
}

// Size is about how many bytes entries take as JSON.
func Size(entries []Entry) int {
	const besideSelector = 70
	size := 0
	for _, e := range entries {
		size += besideSelector + len(e.PodSelector)
	}
	return size
}

// Pod is what a plan looks at in a pod.
type Pod struct {
	Type     PodType
	Priority int32
	Labels   map[string]string
}
