package health

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/nodelease"
	rules "drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/nodestate"
)

// What is written on remediation objects, as medik8s has it, and what says whose they are.
const (
	nodeNameAnnotation     = "remediation.medik8s.io/node-name"
	templateNameAnnotation = "remediation.medik8s.io/template-name"
	partOfLabel, partOf    = "app.kubernetes.io/part-of", "node-healthcheck-controller"
	controlPlaneLabel      = "remediation.medik8s.io/isControlPlaneNode"
	// checkLabel and workflowAnnotation name the check and the workflow of an object.
	checkLabel         = "drydock.dev/health-check"
	workflowAnnotation = "drydock.dev/workflow"
)

// EnsureObject takes the node's lease and makes the remediation object of a step, or finds the one that is there. It may be repeated,
// also by a later workflow while the activity of a terminated one still runs: the object has the same name each time, so that the API
// server makes one of them. What stands in the way is part of the answer, and no error.
func (a *Activities) EnsureObject(ctx context.Context, in ObjectInput) (EnsuredObject, error) {
	made, err := a.ensure(ctx, in)
	if err == nil && made.Resource == nil && activity.GetInfo(ctx).Attempt > 1 {
		made, err = a.madeBefore(ctx, in, made)
	}
	if err != nil {
		return EnsuredObject{}, failure.Translate(ctx, a.Objects.Kube(), err)
	}
	return made, nil
}

// madeBefore finds what an earlier attempt has made whose answer was lost, where there is a reason by now to make none.
func (a *Activities) madeBefore(ctx context.Context, in ObjectInput, answer EnsuredObject) (EnsuredObject, error) {
	own, err := a.findOwn(ctx, in.Check, in.Node, in.Template)
	if err != nil {
		return EnsuredObject{}, err
	}
	for _, r := range own {
		o, _, err := a.read(ctx, r)
		if err != nil {
			return EnsuredObject{}, err
		}
		if o != nil && o.GetDeletionTimestamp() == nil {
			return EnsuredObject{Resource: &r, StartedAt: o.GetCreationTimestamp().UTC(), Found: true, Lease: LeaseState{Held: true}}, nil
		}
	}
	return answer, nil
}

func (a *Activities) ensure(ctx context.Context, in ObjectInput) (EnsuredObject, error) {
	node, err := a.Objects.Kube().CoreV1().Nodes().Get(ctx, in.Node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return EnsuredObject{NodeGone: true}, nil
	case err != nil:
		return EnsuredObject{}, fmt.Errorf("reading node %s: %w", in.Node, err)
	case in.UID != "" && string(node.UID) != in.UID:
		return EnsuredObject{NodeGone: true, NodeUID: string(node.UID)}, nil
	}
	in.UID = string(node.UID) // the lease is the node's
	from, bad, err := a.readTemplate(ctx, in.Template)
	if err != nil || bad.Reason != "" {
		return EnsuredObject{Failure: bad.Why, FailureReason: bad.Reason}, err
	}
	if from.multiple, err = a.severalNames(ctx, in, from); err != nil {
		return EnsuredObject{}, err
	}
	there, err := a.find(ctx, in, from)
	if err != nil || there.Resource == nil && there.answers() {
		return there, err
	}
	if there.Resource == nil {
		return a.begin(ctx, in, from, node)
	}
	lease, err := a.takeLease(ctx, in)
	if err != nil {
		return EnsuredObject{}, err
	}
	there.Lease = LeaseState{Held: lease.Held, HeldBy: lease.HeldBy} // with or without the lease, the object is at work
	return there, nil
}

// begin makes the object of a step, unless something stands in the way.
func (a *Activities) begin(ctx context.Context, in ObjectInput, from template, node *corev1.Node) (EnsuredObject, error) {
	if why := a.mayTouch(in, node); why != "" {
		return EnsuredObject{Skipped: why}, nil
	}
	if not := a.withoutSlot(ctx, in, node); not.answers() {
		return not, nil
	}
	machine, unproven, err := a.machineOf(ctx, in.Template, node)
	if unproven != "" || err != nil {
		return EnsuredObject{Unproven: unproven}, err
	}
	lease, err := a.takeLease(ctx, in)
	if err != nil {
		return EnsuredObject{}, err
	}
	state := LeaseState{Held: lease.Held, HeldBy: lease.HeldBy}
	if !lease.Held {
		return EnsuredObject{LeaseHeldBy: lease.HeldBy, Lease: state}, nil
	}
	if why, err := a.isIndispensable(ctx, in, node); why != "" || err != nil {
		return EnsuredObject{Indispensable: why, Lease: state}, err
	}
	made, err := a.make(ctx, in, from, node, machine)
	made.Lease = state
	return made, err
}

// takeLease takes the node's lease. The answer to a heartbeat says whether the workflow still runs: the activity of one that was terminated
// takes no lease.
func (a *Activities) takeLease(ctx context.Context, in ObjectInput) (nodelease.State, error) {
	if activity.RecordHeartbeat(ctx); ctx.Err() != nil {
		return nodelease.State{}, ctx.Err()
	}
	return a.leases().Take(ctx, in.want())
}

// answers reports whether it says why nothing is made.
func (e EnsuredObject) answers() bool {
	return e.NotOwned+e.Waiting+e.Skipped+e.Failure+e.Unproven != "" || e.NodeGone || e.NeedsSlot
}

func (in ObjectInput) want() nodelease.Want {
	return LeaseInput{Check: in.Check, Node: in.Node, UID: in.UID, LeaseWant: in.Lease}.want()
}

// name returns the object's name: the node's, or, where a node may have several objects, one that depends on the check, the node and the
// template alone. Whatever runs make an object of a template for a node, the API server accepts one.
func (in ObjectInput) name(from template) string {
	if !from.multiple {
		return in.Node
	}
	h := fnv.New32a()
	fmt.Fprintf(h, "%s/%s/%s", in.Check, in.Node, in.Template.Name)
	const suffixes = 36 * 36 * 36 * 36 * 36
	base := in.Node + "-"
	return base[:min(len(base), maxGenerated)] + strconv.FormatUint(suffixes+uint64(h.Sum32())%suffixes, 36)[1:]
}

// maxGenerated is how much of a generateName the API server takes.
const maxGenerated = 58

// severalNames reports whether the object needs a name beside the node's: its template says so, or an earlier step of the check has an
// object of the same kind from another template under the name of the node.
func (a *Activities) severalNames(ctx context.Context, in ObjectInput, from template) (bool, error) {
	if from.multiple || in.Step == 0 {
		return from.multiple, nil
	}
	o, err := a.Objects.Get(ctx, from.makes, from.namespace, in.Node)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s %s: %w", from.makes.Kind, in.Node, err)
	}
	return in.owns(o) && !in.isFor(o) && o.GetAnnotations()[nodeNameAnnotation] == in.Node && o.GetDeletionTimestamp() == nil, nil
}

// isFor reports whether an object is for the node, from the template. Those of older operators do not say from which.
func (in ObjectInput) isFor(o *unstructured.Unstructured) bool {
	node, said := o.GetAnnotations()[nodeNameAnnotation]
	if !said {
		node = o.GetName()
	}
	template := o.GetAnnotations()[templateNameAnnotation]
	return node == in.Node && (template == in.Template.Name || template == "" && o.GetName() == in.Node)
}

// owns reports whether an object is the check's: by its label, or by an owner reference to the NodeHealthCheck of its name.
func (in ObjectInput) owns(o *unstructured.Unstructured) bool {
	return o.GetLabels()[checkLabel] == in.Check || slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		return r.Kind == ownerKind && r.APIVersion == ownerAPIVersion && r.Name == in.Check
	})
}

func whose(o *unstructured.Unstructured) string {
	if check := o.GetLabels()[checkLabel]; check != "" {
		return "health check " + check
	}
	for _, r := range o.GetOwnerReferences() {
		return r.Kind + " " + r.Name
	}
	return "nobody is named"
}

// mayTouch looks at the node once more, as it is now: a watch lags behind. It returns what of the node forbids to remediate it.
func (a *Activities) mayTouch(in ObjectInput, node *corev1.Node) (why string) {
	if value, _ := a.exclusionOf(node); value == k8s.ExcludedValue {
		return "label " + k8s.ExcludeLabel + " is on the node"
	}
	if by := a.maintenanceOf(in.Check, node); by != "" {
		return "the node is under maintenance by " + by
	}
	if hasRecovered(node, in.Conditions) {
		return recovered
	}
	return ""
}

// withoutSlot answers where the node is one of the control plane, and it is not known that the remediation holds the slot for it.
func (a *Activities) withoutSlot(ctx context.Context, in ObjectInput, node *corev1.Node) EnsuredObject {
	if !in.ControlPlane && !nodestate.IsControlPlane(node.Labels) {
		return EnsuredObject{}
	}
	switch held, err := a.holdsSlot(ctx, in.Slot); {
	case err != nil: // an order to end must not wait for the scheduler
		return EnsuredObject{Waiting: fmt.Sprintf("the scheduler to say whether the remediation has its slot: %v", err)}
	case !held:
		return EnsuredObject{NeedsSlot: true}
	}
	return EnsuredObject{}
}

// isIndispensable returns why the control plane cannot do without a node now. It is asked immediately before something is made, and where
// there is no answer nothing is made. Once something was made the control plane does without the node already.
func (a *Activities) isIndispensable(ctx context.Context, in ObjectInput, node *corev1.Node) (why string, err error) {
	if in.Begun || !in.ControlPlane && !nodestate.IsControlPlane(node.Labels) {
		return "", nil
	}
	if other, err := a.otherControlPlane(ctx, in); other != "" || err != nil {
		return other, err
	}
	may, err := a.mayLose(ctx, in.Node, in.Etcd)
	if err != nil || may.Allowed {
		return "", err
	}
	return may.Why, nil
}

// otherControlPlane names a remediation of another control-plane node, also one of another controller: one is remediated
// at a time.
func (a *Activities) otherControlPlane(ctx context.Context, in ObjectInput) (string, error) {
	name, cut := strings.CutSuffix(in.Template.Kind, templateSuffix)
	if !cut {
		return "", nil
	}
	kind, gone, err := a.kindOf(ctx, rules.Resource{APIVersion: in.Template.APIVersion, Kind: name})
	if gone || err != nil {
		return "", err
	}
	all, err := a.Objects.ListMetadata(ctx, kind, in.Template.Namespace, controlPlaneLabel)
	if err != nil {
		return "", fmt.Errorf("listing %s: %w", kind.Resource, err)
	}
	for _, o := range all {
		node, said := o.GetAnnotations()[nodeNameAnnotation]
		if !said {
			node = o.GetName()
		}
		if node != in.Node {
			return fmt.Sprintf("one control-plane node is remediated at a time: %s %s is there", kind.Kind, o.GetName()), nil
		}
	}
	return "", nil
}

// recovered is why nothing is begun on a node that is well: the decision may be older, for example while the watch of a lost worker
// still counts as running.
const recovered = "the node has none of the check's conditions any more"

func hasRecovered(node *corev1.Node, conditions []rules.UnhealthyCondition) bool {
	return len(conditions) > 0 && len(criteria{conditions: conditions}.matches(node, false)) == 0
}

// make creates the object.
func (a *Activities) make(ctx context.Context, in ObjectInput, from template, node *corev1.Node, machine *metav1.OwnerReference) (EnsuredObject, error) {
	owners, err := a.owners(ctx, in, machine)
	if err != nil {
		return EnsuredObject{}, err
	}
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(from.makes.GroupVersionKind)
	o.SetNamespace(from.namespace)
	o.SetName(in.name(from))
	if from.multiple {
		o.SetGenerateName(in.Node + "-")
	}
	labels := map[string]string{partOfLabel: partOf, checkLabel: in.Check}
	if in.ControlPlane || nodestate.IsControlPlane(node.Labels) {
		labels[controlPlaneLabel] = ""
	}
	o.SetLabels(labels)
	o.SetAnnotations(map[string]string{
		nodeNameAnnotation: in.Node, templateNameAnnotation: in.Template.Name, workflowAnnotation: activity.GetInfo(ctx).WorkflowExecution.ID,
	})
	o.SetOwnerReferences(owners)
	if from.spec != nil {
		o.Object["spec"] = from.spec
	}
	created, err := a.Objects.Create(ctx, from.makes, o)
	switch {
	case apierrors.IsAlreadyExists(err):
		return a.findNamed(ctx, in, from, o.GetName())
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return EnsuredObject{Failure: fmt.Sprintf("the API server refuses what template %s makes: %v", refOf(in.Template), err)}, nil
	case err != nil:
		return EnsuredObject{}, fmt.Errorf("creating %s %s: %w", from.makes.Kind, o.GetName(), err)
	}
	if kept, err := a.keep(ctx, in, from, created); !kept || err != nil {
		return EnsuredObject{Waiting: "the node's lease, which was given back while the object was made"}, err
	}
	started := created.GetCreationTimestamp().UTC()
	if started.IsZero() {
		started = time.Now().UTC()
	}
	return EnsuredObject{Resource: resourceOf(from, created), StartedAt: started}, nil
}

// keep deletes an object that was just made if the node's lease was given back meanwhile: then the workflow was terminated, a later one has
// ended the remediation without this object, and nobody would remove it.
func (a *Activities) keep(ctx context.Context, in ObjectInput, from template, made *unstructured.Unstructured) (kept bool, err error) {
	held, err := a.leases().IsHeld(ctx, in.Node, LeaseHolder(in.Check))
	if held || err != nil { // the next attempt finds the object
		return true, err
	}
	_, err = a.delete(ctx, in.Check, *resourceOf(from, made))
	return false, err
}

func resourceOf(from template, o *unstructured.Unstructured) *rules.Resource {
	return &rules.Resource{
		APIVersion: from.makes.GroupVersion().String(), Kind: from.makes.Kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: string(o.GetUID()),
	}
}

// The kind of medik8s' checks: an object of a check's name owns its remediation objects.
const (
	ownerGroup, ownerVersion = "remediation.medik8s.io", "v1alpha1"
	ownerAPIVersion          = ownerGroup + "/" + ownerVersion
	ownerKind                = "NodeHealthCheck"
)

// owners are the NodeHealthCheck of the check's name, where there is one, and the Machine that the node is.
func (a *Activities) owners(ctx context.Context, in ObjectInput, machine *metav1.OwnerReference) ([]metav1.OwnerReference, error) {
	var owners []metav1.OwnerReference
	owner := in.Owner
	if owner == nil {
		found, err := a.findOwner(ctx, in.Check)
		if err != nil {
			return nil, err
		}
		owner = found
	}
	if owner != nil {
		owners = append(owners, metav1.OwnerReference{
			APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: types.UID(owner.UID), Controller: new(false),
		})
	}
	if machine != nil {
		owners = append(owners, *machine)
	}
	return owners, nil
}

// findOwner finds the NodeHealthCheck object of a check's name, nil if there is none or its kind is not served.
func (a *Activities) findOwner(ctx context.Context, check string) (*api.HealthCheckOwner, error) {
	version, err := a.Objects.Preferred(ctx, ownerGroup)
	if err != nil || version == "" {
		return nil, err
	}
	kind, err := a.Objects.Resolve(ctx, ownerAPIVersion, ownerKind)
	if isNoKind(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	object, err := a.Objects.Get(ctx, kind, "", check)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s %s: %w", ownerKind, check, err)
	}
	return &api.HealthCheckOwner{APIVersion: ownerAPIVersion, Kind: ownerKind, Name: check, UID: string(object.GetUID())}, nil
}
