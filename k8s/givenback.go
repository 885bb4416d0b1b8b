package k8s

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s/kube"
)

// ErrGivenBack says that the node records releases by maintenances of this workflow ID, and the caller has to check them first. Errors
// that wrap it are a GivenBackError.
var ErrGivenBack = errors.New("the node was given back")

// GivenBack is what a node keeps of a maintenance that has given it back. A Temporal server that is restored to an earlier state
// does not know the release, and would have the maintenance done again.
type GivenBack struct {
	// WorkflowID and RunID are the maintenance, Namespace the ID of the Temporal namespace that it lives in.
	WorkflowID string `json:"workflowId"`
	RunID      string `json:"runId"`
	Namespace  string `json:"namespace"`
	// At is when, and Reason that of the node's Event.
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
	// KeptSeconds is how long the namespace keeps what has ended.
	KeptSeconds int64 `json:"keptSeconds"`
	// By, Run and Activity name the activity that released the node: its workflow, the run and the activity's ID.
	By       string `json:"by"`
	Run      string `json:"run"`
	Activity string `json:"activity"`
}

// GivenBackError has the releases that a node records of maintenances with one workflow ID.
type GivenBackError struct {
	Node     string
	UID      types.UID
	Releases []GivenBack
}

// Error implements error.
func (e *GivenBackError) Error() string {
	return fmt.Sprintf("node %s: %s gave it back", e.Node, e.Releases[0].WorkflowID)
}

// Unwrap is ErrGivenBack.
func (e *GivenBackError) Unwrap() error { return ErrGivenBack }

// maxGivenBack is how many releases, the latest, a node records. maxGivenBackText bounds what is read of them: anybody who may annotate
// nodes may have written it.
const (
	maxGivenBack     = 8
	maxGivenBackText = 16 << 10
)

// GivenBackOn returns the releases that a node records, none where the record cannot be read.
func GivenBackOn(node *corev1.Node) (releases []GivenBack) {
	text := node.Annotations[api.GivenBackAnnotation]
	if len(text) > maxGivenBackText || json.Unmarshal([]byte(text), &releases) != nil {
		return nil
	}
	return releases[max(len(releases)-maxGivenBack, 0):]
}

// checkReleases returns an error where a node that the holder does not hold yet records releases of its workflow ID.
func (in HoldInput) checkReleases(node *corev1.Node, mine bool) error {
	if mine || !in.ChecksReleases {
		return nil
	}
	own := slices.DeleteFunc(GivenBackOn(node), func(g GivenBack) bool {
		return g.WorkflowID != in.Holder.WorkflowID || g.Namespace != in.Holder.Namespace
	})
	if len(own) == 0 {
		return nil
	}
	return &GivenBackError{node.Name, node.UID, own}
}

// CheckReleases returns the GivenBackError of Hold, and changes nothing. A node that does not exist has no releases.
func CheckReleases(ctx context.Context, client kube.Interface, in HoldInput) error {
	node, err := ReadAhead(ctx, client, in.Node).wait()
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading node %s: %w", in.Node, err)
	}
	mark, err := MarkOf(node)
	if err != nil {
		return err
	}
	return in.checkReleases(node, mark.HeldBy(in.Holder.WorkflowID, in.Holder.RunID))
}

// addTo records a release on the node; nil records none.
func (g *GivenBack) addTo(annotations map[string]*string, node *corev1.Node) error {
	if g == nil {
		return nil
	}
	releases := slices.DeleteFunc(GivenBackOn(node), func(one GivenBack) bool {
		return one.WorkflowID == g.WorkflowID && one.RunID == g.RunID && one.Namespace == g.Namespace
	})
	releases = append(releases, *g)
	text, err := json.Marshal(releases[max(len(releases)-maxGivenBack, 0):])
	annotations[api.GivenBackAnnotation] = new(string(text))
	return err
}
