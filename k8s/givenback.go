package k8s

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock/api"
)

// ErrGivenBack: the node says that a maintenance of this workflow ID has given it back. Errors that wrap it are a GivenBackError.
var ErrGivenBack = errors.New("the node was given back")

// GivenBack is what a node keeps of a maintenance that has given it back. A Temporal server that is restored to an earlier state
// does not know the release, and would have the maintenance done again.
type GivenBack struct {
	// WorkflowID is the maintenance, Namespace the ID of the Temporal namespace that it lives in.
	WorkflowID string    `json:"workflowId"`
	Namespace  string    `json:"namespace"`
	At         time.Time `json:"at"`
	// By, Run and Activity name the activity that released the node: its workflow, the run and the activity's ID.
	By       string `json:"by"`
	Run      string `json:"run"`
	Activity string `json:"activity"`
}

// GivenBackError says which release the node tells of.
type GivenBackError struct {
	Node string
	GivenBack
}

// Error implements error.
func (e *GivenBackError) Error() string {
	return fmt.Sprintf("node %s: %s gave it back on %s", e.Node, e.WorkflowID, e.At.UTC().Format(time.RFC3339))
}

// Unwrap is ErrGivenBack.
func (e *GivenBackError) Unwrap() error { return ErrGivenBack }

// maxGivenBack is of how many maintenances, the last ones of as many workflow IDs, a node tells. maxGivenBackText is how much is read:
// whoever may annotate nodes may have written it.
const (
	maxGivenBack     = 8
	maxGivenBackText = 16 << 10
)

// GivenBackOn are the releases that a node tells of. What cannot be read tells of none.
func GivenBackOn(node *corev1.Node) (releases []GivenBack) {
	text := node.Annotations[api.GivenBackAnnotation]
	if len(text) > maxGivenBackText || json.Unmarshal([]byte(text), &releases) != nil {
		return nil
	}
	return releases[max(len(releases)-maxGivenBack, 0):]
}

// lastGivenBack is the last release of a holder's workflow ID that a node tells of.
func (h Holder) lastGivenBack(node *corev1.Node) error {
	for _, g := range slices.Backward(GivenBackOn(node)) {
		if g.WorkflowID == h.WorkflowID && g.Namespace == h.Namespace {
			return &GivenBackError{node.Name, g}
		}
	}
	return nil
}

// addTo has the node tell of a release; nil tells of none.
func (g *GivenBack) addTo(annotations map[string]*string, node *corev1.Node) error {
	if g == nil {
		return nil
	}
	releases := slices.DeleteFunc(GivenBackOn(node), func(one GivenBack) bool { return one.WorkflowID == g.WorkflowID })
	releases = append(releases, *g)
	text, err := json.Marshal(releases[max(len(releases)-maxGivenBack, 0):])
	annotations[api.GivenBackAnnotation] = new(string(text))
	return err
}
