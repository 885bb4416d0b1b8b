package objects_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/k8s/objects"
)

func client(t *testing.T) (*objects.Client, *k8stest.Kinds) {
	t.Helper()
	kinds := k8stest.NewKinds()
	server := k8stest.New()
	server.Handle = kinds.Handle
	return objects.New(server.Client(t)), kinds
}

func TestKindsAreFoundOnceTheyAreServed(t *testing.T) {
	c, kinds := client(t)
	if _, err := c.Resolve(t.Context(), "a.example/v1", "Thing"); !errors.Is(err, objects.ErrNoKind) {
		t.Errorf("error = %v", err)
	}
	kinds.Serve("a.example/v1", "Other", "others", true)
	if _, err := c.Resolve(t.Context(), "a.example/v1", "Thing"); !errors.Is(err, objects.ErrNoKind) {
		t.Errorf("error = %v", err)
	}
	kinds.Serve("a.example/v1", "Thing", "things", false)
	kind, err := c.Resolve(t.Context(), "a.example/v1", "Thing")
	want := objects.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "a.example", Version: "v1", Kind: "Thing"}, Resource: "things"}
	if err != nil || kind != want {
		t.Errorf("%+v, %v", kind, err)
	}
	if version, err := c.Preferred(t.Context(), "a.example"); version != "v1" || err != nil {
		t.Errorf("%q, %v", version, err)
	}
}

func TestNamesAreNoOtherPaths(t *testing.T) {
	c, kinds := client(t)
	kinds.Serve("a.example/v1", "Thing", "things", true)
	kind, err := c.Resolve(t.Context(), "a.example/v1", "Thing")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"..", ".", "a/b", "../../api/v1/secrets", "%2e", ""} {
		if _, err := c.Get(t.Context(), kind, "default", name); err == nil || apierrors.IsNotFound(err) {
			t.Errorf("name %q: %v", name, err)
		}
		if _, err := c.Get(t.Context(), kind, name, "a"); name != "" && (err == nil || apierrors.IsNotFound(err)) {
			t.Errorf("namespace %q: %v", name, err)
		}
	}
	if _, err := c.Resolve(t.Context(), "../v1", "Thing"); err == nil {
		t.Error("a group that is a path was asked for")
	}
}

func TestOnlyTheVeryObjectIsDeleted(t *testing.T) {
	c, kinds := client(t)
	kinds.Serve("a.example/v1", "Thing", "things", true)
	made := kinds.Set(`{"apiVersion":"a.example/v1","kind":"Thing","metadata":{"namespace":"n","name":"t"},"spec":{"big":9007199254740993}}`)
	kind, err := c.Resolve(t.Context(), "a.example/v1", "Thing")
	if err != nil {
		t.Fatal(err)
	}
	read, err := c.Get(t.Context(), kind, "n", "t")
	if err != nil {
		t.Fatal(err)
	}
	if big, _, err := unstructured.NestedInt64(read.Object, "spec", "big"); big != 9007199254740993 || err != nil {
		t.Errorf("a whole number became %v, %v", big, err)
	}
	if err := c.Delete(t.Context(), kind, "n", "t", "another"); !apierrors.IsConflict(err) {
		t.Errorf("another one: %v", err)
	}
	if err := c.Delete(t.Context(), kind, "n", "t", made.GetUID()); err != nil || kinds.Find("a.example/things/n/t") != nil {
		t.Errorf("the very one: %v", err)
	}
	if all, err := c.List(t.Context(), kind, "", ""); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}
