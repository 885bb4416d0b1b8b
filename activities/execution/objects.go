package execution

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	historypb "go.temporal.io/api/history/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/rules/spec"
)

// nodeMaintenances are the objects that ask for maintenances.
const nodeMaintenances = "nodemaintenances"

// Objects know which Kubernetes users have asked for maintenances by objects, and have approved them. The API server writes their names
// down by the admission policies of deploy/kubernetes/bridge. Without the policies, an object names whom its writer chooses.
type Objects struct{ Kubernetes kube.Interface }

// asking is the object that asks for just what a maintenance was started with, by the first event of its first run; nil where none does.
// Anyone who may write to Temporal can name an object in an input. The object counts only if it asks for all of that input.
func (o *Objects) asking(ctx context.Context, first *historypb.WorkflowExecutionStartedEventAttributes) (*v1alpha1.NodeMaintenance, error) {
	if o == nil || first.GetWorkflowType().GetName() != api.NodeMaintenanceType || len(first.GetInput().GetPayloads()) == 0 {
		return nil, nil
	}
	var input map[string]any
	var named struct {
		Object spec.Object `json:"object"`
	}
	data := first.GetInput().GetPayloads()[0].GetData()
	isRead := json.Unmarshal(data, &input) == nil && json.Unmarshal(data, &named) == nil // what does not decode the workflow refuses
	if !isRead || named.Object.Resource != nodeMaintenances+"."+v1alpha1.GroupVersion.Group || len(validation.IsDNS1123Subdomain(named.Object.Name)) > 0 {
		return nil, nil
	}
	object := &v1alpha1.NodeMaintenance{}
	answer := o.Kubernetes.CoreV1().RESTClient().Get().
		AbsPath("apis", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, nodeMaintenances, named.Object.Name).
		SetHeader("Accept", "application/json").Do(ctx)
	err := answer.Error() // which says why, as that of Raw does not
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err == nil {
		var body []byte
		if body, err = answer.Raw(); err == nil {
			err = json.Unmarshal(body, object)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s, which asks for the maintenance: %w", nodeMaintenances, named.Object.Name, err)
	}
	delete(input, "object")
	if string(object.UID) != named.Object.UID || !asksFor(object, input) {
		return nil, nil
	}
	return object, nil
}

// asksFor reports whether an object asks for an input.
func asksFor(object *v1alpha1.NodeMaintenance, input map[string]any) bool {
	given, _, err := object.Spec.Input(v1alpha1.Absent(object.Name))
	if err != nil {
		return false
	}
	var asked map[string]any
	return json.Unmarshal(given, &asked) == nil && reflect.DeepEqual(asked, input)
}

// user is the principal of a Kubernetes user, empty if there is none.
func user(name string) string {
	if name == "" {
		return ""
	}
	return userType + ":" + name
}

// userType is the type of the principals that are Kubernetes users.
const userType = "kubernetes"

// requestor is the principal who asked for a maintenance by an object; empty where none is known.
func (o *Objects) requestor(ctx context.Context, first *historypb.WorkflowExecutionStartedEventAttributes) (string, error) {
	object, err := o.asking(ctx, first)
	if object == nil || err != nil {
		return "", err
	}
	_, origin, err := object.Spec.Input(nil)
	return user(origin.RequestedBy), err
}

// Decider is the principal who approved or denied a maintenance by an annotation of its object, as its status says, which the bridge alone
// writes. It is empty where the object says no such decision.
func (s *Starters) Decider(ctx context.Context, run Run, said v1alpha1.Decision) (string, error) {
	if s.Objects == nil {
		return "", nil
	}
	event, root, _, err := s.root(ctx, run)
	if err != nil || event == nil || root.WorkflowID != run.WorkflowID {
		return "", err
	}
	object, err := s.Objects.asking(ctx, event.GetWorkflowExecutionStartedEventAttributes())
	if object == nil || err != nil {
		return "", err
	}
	if decided := object.Status.Decision; decided == nil || *decided != said {
		return "", nil
	}
	return user(said.By), nil
}
