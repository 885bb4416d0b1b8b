package kube_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/k8s/kube"
)

// seen is what an API server sees of a request.
type seen struct{ Method, URL, Accept, ContentType, Agent, Body string }

// calls are requests of every sort.
var calls = map[string]func(context.Context, kube.Interface) error{
	"get": func(ctx context.Context, c kube.Interface) error {
		_, err := c.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{ResourceVersion: "0"})
		return err
	},
	"list": func(ctx context.Context, c kube.Interface) error {
		_, err := c.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
			LabelSelector: "a=b", FieldSelector: "spec.nodeName=n1", Limit: 5, Continue: "more", TimeoutSeconds: new(int64(9)),
		})
		return err
	},
	"watch": func(ctx context.Context, c kube.Interface) error {
		_, err := c.BatchV1().Jobs("shop").Watch(ctx, metav1.ListOptions{ResourceVersion: "7", AllowWatchBookmarks: true})
		return err
	},
	"create": func(ctx context.Context, c kube.Interface) error {
		_, err := c.BatchV1().Jobs("shop").Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j1"}}, metav1.CreateOptions{FieldManager: "me"})
		return err
	},
	"patch": func(ctx context.Context, c kube.Interface) error {
		_, err := c.CoreV1().Nodes().Patch(ctx, "n1", types.JSONPatchType, []byte(`[]`), metav1.PatchOptions{FieldManager: "me"}, "status")
		return err
	},
	"delete": func(ctx context.Context, c kube.Interface) error {
		return c.AppsV1().DaemonSets("shop").Delete(ctx, "d1", metav1.DeleteOptions{GracePeriodSeconds: new(int64(3))})
	},
	"log": func(ctx context.Context, c kube.Interface) error {
		return c.CoreV1().Pods("shop").GetLogs("p1", &corev1.PodLogOptions{Container: "main", TailLines: new(int64(10))}).Do(ctx).Error()
	},
	"claim": func(ctx context.Context, c kube.Interface) error {
		_, err := c.CoreV1().PersistentVolumeClaims("shop").Get(ctx, "data", metav1.GetOptions{})
		return err
	},
	"access review": func(ctx context.Context, c kube.Interface) error {
		_, err := c.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{}, metav1.CreateOptions{})
		return err
	},
	"review": func(ctx context.Context, c kube.Interface) error {
		_, err := c.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		return err
	},
	"token review": func(ctx context.Context, c kube.Interface) error {
		_, err := c.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{}, metav1.CreateOptions{})
		return err
	},
	"access review of another": func(ctx context.Context, c kube.Interface) error {
		_, err := c.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{}, metav1.CreateOptions{})
		return err
	},
	"budgets": func(ctx context.Context, c kube.Interface) error {
		return c.PolicyV1().RESTClient().Get().Namespace("shop").Resource("poddisruptionbudgets").Do(ctx).Error()
	},
	"attachments": func(ctx context.Context, c kube.Interface) error {
		return c.StorageV1().RESTClient().Get().Resource("volumeattachments").Do(ctx).Error()
	},
	"eviction requests": func(ctx context.Context, c kube.Interface) error {
		return c.LifecycleV1alpha1().RESTClient().Get().Resource("evictionrequests").Do(ctx).Error()
	},
}

// TestRequestsAreTheClientsets holds each request, and the error of its answer, to those of client-go's clientset.
func TestRequestsAreTheClientsets(t *testing.T) {
	var last seen
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		last = seen{
			Method: r.Method, URL: r.URL.String(), Accept: r.Header.Get("Accept"), ContentType: r.Header.Get("Content-Type"),
			Agent: r.UserAgent(), Body: string(body),
		}
		k8stest.Respond(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"no such thing"}`)
	}))
	defer server.Close()
	for name, config := range map[string]rest.Config{
		"as it comes":     {},
		"as the worker's": {ContentConfig: rest.ContentConfig{AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON}, UserAgent: "drydock-worker/1", QPS: 100, Burst: 100},
	} {
		config.Host = server.URL
		all, err := kubernetes.NewForConfig(&config)
		if err != nil {
			t.Fatal(err)
		}
		narrow, err := kube.NewForConfig(&config)
		if err != nil {
			t.Fatal(err)
		}
		for what, call := range calls {
			t.Run(name+", "+what, func(t *testing.T) {
				wantErr := call(t.Context(), k8stest.Narrow(all))
				want := last
				last = seen{}
				err := call(t.Context(), narrow)
				if diff := cmp.Diff(want, last); diff != "" {
					t.Errorf("the clientset asks otherwise:\n%s", diff)
				}
				if !apierrors.IsNotFound(err) || err.Error() != wantErr.Error() {
					t.Errorf("%v, want %v", err, wantErr)
				}
			})
		}
	}
}

func TestGroupsShareABudgetOfRequests(t *testing.T) {
	if _, err := kube.NewForConfig(&rest.Config{Host: "http://127.0.0.1", QPS: 5}); err == nil {
		t.Error("QPS without Burst was accepted")
	}
	client, err := kube.NewForConfig(&rest.Config{Host: "http://127.0.0.1", QPS: 5, Burst: 5})
	if err != nil {
		t.Fatal(err)
	}
	if client.CoreV1().RESTClient().GetRateLimiter() != client.PolicyV1().RESTClient().GetRateLimiter() {
		t.Error("each group has a budget of its own")
	}
}

func TestTheServersVersionIsRead(t *testing.T) {
	answer := `{"major":"1","minor":"37","gitVersion":"v1.37.2"}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		io.WriteString(w, answer) //nolint:errcheck // the client tells
	}))
	defer server.Close()
	client, err := kube.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := kube.ServerVersion(t.Context(), client); err != nil || info.String() != "v1.37.2" {
		t.Errorf("%s, %v", info, err)
	}
	answer = "<html>"
	if _, err := kube.ServerVersion(t.Context(), client); err == nil {
		t.Error("a page was taken for a version")
	}
}
