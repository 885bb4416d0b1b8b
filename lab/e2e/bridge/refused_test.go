package bridge

import (
	"errors"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/v1alpha1"
)

// refuseStatus has the API server refuse the status of an object until the returned function is called.
func (b *bridged) refuseStatus(object string) (allow func()) {
	b.Helper()
	policies, bindings := b.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicies(), b.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	name, invalid := b.ID+"-"+object, metav1.StatusReasonInvalid
	if _, err := policies.Create(b.Ctx, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				ResourceNames: []string{object},
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule: admissionv1.Rule{
						APIGroups: []string{v1alpha1.GroupVersion.Group}, APIVersions: []string{v1alpha1.GroupVersion.Version}, Resources: []string{"nodemaintenances/status"},
					},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "the status is refused for now", Reason: &invalid}},
		},
	}, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	if _, err := bindings.Create(b.Ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	b.Eventually("the status of "+object+" is refused", func() error {
		err := b.Kube.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath("/apis", v1alpha1.GroupVersion.String(), "nodemaintenances", object, "status").
			Param("dryRun", "All").Body([]byte(`{"status":{"message":"tried"}}`)).Do(b.Ctx).Error()
		if !apierrors.IsInvalid(err) {
			return fmt.Errorf("%w, want a refusal", err)
		}
		return nil
	})
	return func() {
		err1 := bindings.Delete(b.Ctx, name, metav1.DeleteOptions{})
		err2 := policies.Delete(b.Ctx, name, metav1.DeleteOptions{})
		if err := errors.Join(err1, err2); err != nil {
			b.Fatal(err)
		}
	}
}

// What cannot be written for a while is tried again: the object's Event counts the attempts, and the object shows it in the end.
func TestAStatusThatWasRefusedIsWrittenLater(t *testing.T) {
	b := newBridged(t, "")
	b.ask("refused", "{node: worker-08, approval: true}")
	b.shows("refused", v1alpha1.Reconciling, string(api.AwaitingApproval))
	allow := b.refuseStatus("refused")
	b.Exits(b.Drydock("approve", "worker-08", "--requestor", "refused"), 0)
	b.Eventually("an Event counts the attempts", func() error {
		events, err := b.Kube.EventsV1().Events(metav1.NamespaceDefault).List(b.Ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Regarding.Name == "refused" && e.Reason == "Error" && e.Series != nil {
				return nil
			}
		}
		return fmt.Errorf("there are %d Events", len(events.Items))
	})
	allow()
	o := b.shows("refused", v1alpha1.Ready, string(api.Ready))
	b.delete("refused")
	b.isGone("refused")
	b.MustEnd(b.run(o), api.Completed)
}
