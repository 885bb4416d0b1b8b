package scrape

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/k8s/k8stest"
)

// site is a guard before an API server that knows the tokens prometheus and nobody, and lets the first one get /metrics.
type site struct {
	guard *Guard
	now   time.Time
	// asked counts reviews; away has the API server answer none.
	asked int
	away  bool
}

func newSite() *site {
	s := &site{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	api := fake.NewClientset()
	api.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		s.asked++
		if s.away {
			return true, &authenticationv1.TokenReview{}, errors.New("no answer")
		}
		review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
		token := review.Spec.Token
		review.Status.Authenticated = token == "prometheus" || token == "nobody"
		review.Status.User = authenticationv1.UserInfo{Username: token, Groups: []string{"system:authenticated"}}
		return true, review, nil
	})
	api.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		what := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "prometheus" && what != nil && *what == authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
		return true, review, nil
	})
	s.guard = New(k8stest.Narrow(api), slog.New(slog.DiscardHandler), func() time.Time { return s.now })
	return s
}

// get asks for the metrics.
func (s *site) get(authorization string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	answer := httptest.NewRecorder()
	s.guard.Before("/metrics", "bind the ClusterRole drydock-worker-metrics-reader to it", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "drydock_maintenances 1") })).ServeHTTP(answer, request)
	return answer
}

func TestMetricsAreForThoseWhoMayGetThem(t *testing.T) {
	for name, one := range map[string]struct {
		authorization string
		want          int
	}{
		"Prometheus":          {"Bearer prometheus", http.StatusOK},
		"in another spelling": {"bearer  prometheus", http.StatusOK},
		"no token":            {"", http.StatusUnauthorized},
		"an empty token":      {"Bearer ", http.StatusUnauthorized},
		"a password":          {"Basic prometheus", http.StatusUnauthorized},
		"an unknown token":    {"Bearer forged", http.StatusUnauthorized},
		"an endless token":    {"Bearer " + strings.Repeat("x", maxToken+1), http.StatusUnauthorized},
		"another account":     {"Bearer nobody", http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			got := newSite().get(one.authorization)
			if got.Code != one.want {
				t.Errorf("%d, want %d", got.Code, one.want)
			}
			if told := got.Header().Get("WWW-Authenticate") == "Bearer"; told != (one.want == http.StatusUnauthorized) {
				t.Errorf("%d says what is wanted: %v", one.want, told)
			}
		})
	}
}

func TestAnswersAreRememberedForAWhile(t *testing.T) {
	s := newSite()
	expect := func(authorization string, status, asked int) {
		t.Helper()
		if got := s.get(authorization); got.Code != status || s.asked != asked {
			t.Errorf("%d after %d questions, want %d after %d", got.Code, s.asked, status, asked)
		}
	}
	expect("Bearer prometheus", http.StatusOK, 1)
	expect("Bearer forged", http.StatusUnauthorized, 2)
	s.now = s.now.Add(refusedFor - time.Second)
	expect("Bearer prometheus", http.StatusOK, 2)
	expect("Bearer forged", http.StatusUnauthorized, 2)
	s.now = s.now.Add(2 * time.Second)
	expect("Bearer forged", http.StatusUnauthorized, 3)
	expect("Bearer prometheus", http.StatusOK, 3)
	s.now = s.now.Add(allowedFor)
	expect("Bearer prometheus", http.StatusOK, 4)

	// What the API server did not answer is no answer.
	s.away, s.now = true, s.now.Add(2*allowedFor)
	expect("Bearer prometheus", http.StatusServiceUnavailable, 5)
	s.away = false
	expect("Bearer prometheus", http.StatusOK, 6)
}

func TestMadeUpTokensTakeNoMemory(t *testing.T) {
	s := newSite()
	s.get("Bearer prometheus")
	for i := range 3 * maxTokens {
		s.get(fmt.Sprintf("Bearer forged-%d", i))
		if n := len(s.guard.verdicts); n > maxTokens {
			t.Fatalf("%d answers are remembered, want %d at most", n, maxTokens)
		}
	}
	asked := s.asked
	if got := s.get("Bearer prometheus"); got.Code != http.StatusOK || s.asked != asked {
		t.Errorf("Prometheus was forgotten for tokens that somebody made up: %d, %d more questions", got.Code, s.asked-asked)
	}
}
