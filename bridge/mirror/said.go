package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/spec"
)

// byName is behind the name of an annotation in that which says who wrote it: the admission policy writes that, and says who may send what.
// The bridge takes both off once the workflow has the message.
const byName = "-by"

// hear sends the workflow what annotations say, and takes them off.
func (o *mirrored) hear(ctx context.Context) error {
	for _, name := range o.Kind.Messages() {
		key := v1alpha1.Annotation(name)
		comment, given := o.object.GetAnnotations()[key]
		if !given || !o.Approvals && isApproval(name) {
			continue
		}
		said := api.Message{
			ID: o.idOf(name, key), By: o.principal(o.object.GetAnnotations()[key+byName]), Comment: bounds.Cut(comment, bounds.Text),
		}
		if err := o.decide(ctx, name, said.Comment); err != nil {
			return err
		}
		effect, err := o.asked.Say(ctx, name, said)
		switch {
		case isRefusal(err):
			o.Events.Eventf(o.object, nil, corev1.EventTypeWarning, "Refused", "Say", "%s by %s: %v", name, said.By, err)
		case err != nil:
			return fmt.Errorf("%s by %s: %w", name, said.By, err)
		default:
			o.Events.Eventf(o.object, nil, corev1.EventTypeNormal, "Said", "Say", "%s by %s: %s", name, said.By, effect)
		}
		if err := o.takeOff(ctx, key, comment); err != nil {
			return err
		}
	}
	return nil
}

// decide writes an approval or a denial into the status before it is sent, where workers read who it is from.
func (o *mirrored) decide(ctx context.Context, message, comment string) error {
	by := o.object.GetAnnotations()[v1alpha1.Annotation(message)+byName]
	if by == "" || !isApproval(message) {
		return nil
	}
	is := o.object.Shows().Copy()
	is.Common().Decision = &v1alpha1.Decision{Message: message, By: by, Comment: comment}
	return o.show(ctx, is)
}

// takeOff takes an annotation off that was heard, and leaves one that was written again meanwhile.
func (o *mirrored) takeOff(ctx context.Context, key, comment string) error {
	const path = "/metadata/annotations/"
	patch := []map[string]any{{"op": "test", "path": path + escape(key), "value": comment}, {"op": "remove", "path": path + escape(key)}}
	if _, given := o.object.GetAnnotations()[key+byName]; given {
		patch = append(patch, map[string]any{"op": "remove", "path": path + escape(key+byName)})
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	err = o.Kube.Patch(ctx, o.object, kube.RawPatch(types.JSONPatchType, data), kube.FieldOwner(spec.Bridge))
	if apierrors.IsInvalid(err) { // it says something else by now, or nothing any more
		return nil
	}
	return kube.IgnoreNotFound(err)
}

// escape is a key as a JSON pointer has it (RFC 6901).
func escape(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

func isRefusal(err error) bool {
	var refused *client.RefusedError
	return errors.Is(err, client.ErrInvalid) || errors.Is(err, client.ErrEnded) || errors.As(err, &refused)
}

// idOf is the ID of the message of an annotation: the same however often the bridge is interrupted, and another where the annotation is
// written again.
func (o *mirrored) idOf(name, key string) string {
	var at time.Time
	for _, m := range o.object.GetManagedFields() {
		if m.Time != nil && m.Time.After(at) && owns(m, key) {
			at = m.Time.Time
		}
	}
	return fmt.Sprintf("%s/%s/%d", o.object.GetUID(), name, at.Unix())
}

// owns reports whether an entry is of who wrote an annotation.
func owns(m metav1.ManagedFieldsEntry, key string) bool {
	return m.FieldsV1 != nil && strings.Contains(m.FieldsV1.GetRawString(), fmt.Sprintf("%q", "f:"+key))
}
