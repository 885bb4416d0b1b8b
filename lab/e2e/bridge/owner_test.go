package bridge

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/v1alpha1"
)

// Whatever asks for a maintenance by an object that it owns has the node given back when it goes: the garbage collector deletes the object.
// The garbage collector looks for new kinds only every 30 s.
func TestSlowAnObjectEndsWithItsOwner(t *testing.T) {
	b := newBridged(t, "")
	b.install(manifests + "bridge/admission.yaml")
	// Any object will do that is in no namespace either.
	owner, err := b.Kube.RbacV1().ClusterRoles().Create(b.Ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: b.ID + "-rollout"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.objects("create", "owned", map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "NodeMaintenance", "spec": map[string]any{"node": "worker-03"},
		"metadata": map[string]any{"name": "owned", "ownerReferences": []metav1.OwnerReference{
			{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: owner.Name, UID: owner.UID},
		}},
	}, nil); err != nil {
		t.Fatal(err)
	}
	o := b.shows("owned", v1alpha1.Ready, string(api.Ready))
	if err := b.Kube.RbacV1().ClusterRoles().Delete(b.Ctx, owner.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.isGone("owned")
	b.MustEnd(b.run(o), api.Completed)
	b.MustBeFree("worker-03")
}
