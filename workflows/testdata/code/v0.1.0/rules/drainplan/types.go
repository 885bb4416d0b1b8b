package drainplan

import ()

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
	PodType PodType `json:"podType"`
	// PodPriority selects the pods of this priority or less.
	PodPriority int32 `json:"podPriority"`
	// PodSelector is the text of a label selector. The empty one selects all pods.
	PodSelector string `json:"podSelector,omitempty"`
}
