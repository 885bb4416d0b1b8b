package k8s_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
)

func TestOnlyADenialThatIsConfirmedIsAMissingPermission(t *testing.T) {
	says := func(message string) string {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":"Forbidden","details":{"name":"n1","kind":"nodes"},"code":403}`, message)
	}
	authorizer := `nodes "n1" is forbidden: User "system:serviceaccount:drydock:worker" cannot get resource "nodes" in API group "" at the cluster scope`
	for name, c := range map[string]struct {
		body   string
		denied bool // what the authorizer says when it is asked
		silent bool // it refuses to be asked
		want   bool
		asks   int
	}{
		"denied":                        {says(authorizer), true, false, true, 1},
		"denied, with a reason":         {says(authorizer + `: RBAC: clusterrole.rbac.authorization.k8s.io "drydock" not found`), true, false, true, 1},
		"the authorizer has just begun": {says(authorizer), true, true, false, 1},
		"it was so before":              {says(authorizer), false, false, false, 1},
		"a webhook":                     {says(`admission webhook "guard.example.com" denied the request: not in working hours`), true, false, false, 0},
		"a webhook that quotes another": {says(`admission webhook "guard.example.com" denied the request: ` + authorizer), true, false, false, 0},
		"a policy":                      {says(`nodes "n1" is forbidden: ValidatingAdmissionPolicy 'none' with binding 'all' denied request: no`), true, false, false, 0},
		"a quota":                       {says(`nodes "n1" is forbidden: exceeded quota: compute`), true, false, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := k8stest.New()
			if c.denied {
				s.Deny("get", "nodes")
			}
			s.Handle = func(w http.ResponseWriter, r *http.Request) bool {
				review := strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews")
				if review && !c.silent {
					return false
				}
				k8stest.Respond(w, c.body)
				return true
			}
			client := s.Client(t)
			_, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
			if err == nil {
				t.Fatal("it was allowed")
			}
			if got := k8s.Denied(t.Context(), client, fmt.Errorf("reading: %w", err)); got != c.want {
				t.Errorf("denied = %v, want %v: %v", got, c.want, err)
			}
			if n := len(s.Requests("selfsubjectaccessreviews")); n != c.asks {
				t.Errorf("it asked %d times", n)
			}
			if k8s.Denied(t.Context(), nil, err) {
				t.Error("denied without a confirmation")
			}
		})
	}
	if k8s.Denied(t.Context(), nil, nil) || k8s.Denied(t.Context(), nil, apierrors.NewServiceUnavailable("starting")) {
		t.Error("what is no refusal is a denial")
	}
	if !k8s.Denied(t.Context(), nil, fmt.Errorf("to file: %w", k8s.ErrDenied)) {
		t.Error("what was confirmed is asked again")
	}
}
