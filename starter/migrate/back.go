package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/rules/migration"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/exit"
)

// goBack takes the bridge's marks off a system's objects. It says of each what was done, and goes on where one fails.
func (o *options) goBack(ctx context.Context, system migration.System, r *reader) error {
	if !o.output.Table() {
		return exit.UsageError("--output %s: not with --back", o.output.Format)
	}
	cluster, err := r.read(ctx)
	if err != nil {
		return err
	}
	marked, served, underWay := migration.Back(system, cluster)
	switch {
	case len(r.refused) > 0:
		return fmt.Errorf("it cannot be told whether the bridge has stopped, and which objects have its marks: %s", strings.Join(r.refused, "; "))
	case served != "":
		return fmt.Errorf("the objects are served: %s", served)
	case len(marked) == 0:
		_, err := fmt.Fprintln(o.app.Stdout, "No object has a mark of Drydock's bridge.")
		return err
	}
	for _, node := range underWay {
		fmt.Fprintf(o.app.Stderr, "%s: %s goes on from what the object says.\n", node, o.from)
	}
	fmt.Fprintln(o.app.Stderr, "Maintenances of Drydock that still wait or run for these objects go on: cancel them first (drydock list, drydock cancel).")
	if err := o.app.Confirm(fmt.Sprintf("Take the marks of Drydock's bridge off %s?", number.Of(len(marked), "object")), "nothing was changed", o.yes); err != nil {
		return err
	}
	var failed []error
	for _, m := range marked {
		done, err := r.unmark(ctx, m)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", m, err))
			continue
		}
		if _, err := fmt.Fprintf(o.app.Stdout, "%s: %s\n", m, done); err != nil {
			return err
		}
	}
	if len(failed) > 0 {
		return exit.Hint(errors.Join(failed...), `Run "%s migrate --from %s --back" again: what is done stays so.`, o.app.Name, o.from)
	}
	return nil
}

// unmark takes the marks off one object, as it was read: one that has changed since is left.
func (r *reader) unmark(ctx context.Context, m migration.Marked) (done string, err error) {
	metadata := map[string]any{"resourceVersion": m.ResourceVersion, "annotations": map[string]any{spec.RunAnnotation: nil}}
	if m.HasFinalizer {
		metadata["finalizers"] = slices.DeleteFunc(slices.Clone(m.Finalizers), func(f string) bool { return f == spec.ObjectFinalizer })
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return "", err
	}
	_, err = r.client.Resource(m.Kind).Namespace(m.Namespace).Patch(ctx, m.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: spec.Bridge})
	if apierrors.IsNotFound(err) {
		return "gone already", nil
	}
	return "marks taken off", err
}
