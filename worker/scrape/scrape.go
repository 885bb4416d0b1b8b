// Package scrape guards what the worker serves: only accounts that the Kubernetes API server authenticates and authorizes may read it.
package scrape

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/k8s/kube"
)

const (
	// allowedFor and refusedFor are how long an answer of the API server counts: a permission that is withdrawn lasts that long.
	allowedFor = time.Minute
	refusedFor = 10 * time.Second
	// maxTokens bounds the answers that are remembered, and maxToken the length of a token.
	maxTokens = 256
	maxToken  = 16 << 10
	// answersWithin bounds the wait for the API server.
	answersWithin = 10 * time.Second
)

// Reviews are the questions to the API server.
type Reviews interface {
	AuthenticationV1() kube.Authentication
	AuthorizationV1() kube.Authorization
}

// Guard stands before the metrics, or the page.
type Guard struct {
	kube   Reviews
	logger *slog.Logger
	now    func() time.Time

	mu       sync.Mutex
	verdicts map[[sha256.Size]byte]verdict
}

// verdict is the HTTP status for a token.
type verdict struct {
	status int
	until  time.Time
}

// New is a guard that asks an API server.
func New(kube Reviews, logger *slog.Logger, now func() time.Time) *Guard {
	return &Guard{kube: kube, logger: logger, now: now, verdicts: map[[sha256.Size]byte]verdict{}}
}

// Before answers only requests whose bearer token belongs to somebody who may get the nonResourceURL path. Advice says what permits that.
func (g *Guard) Before(path, advice string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch g.judge(r, path) {
		case http.StatusOK:
			next.ServeHTTP(w, r)
		case http.StatusUnauthorized:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "want the token of an account of this cluster, as the header Authorization: Bearer TOKEN", http.StatusUnauthorized)
		case http.StatusForbidden:
			http.Error(w, "the account may not get the nonResourceURL "+path+": "+advice, http.StatusForbidden)
		default:
			http.Error(w, "the API server does not say whose token this is: the worker's log has the reason", http.StatusServiceUnavailable)
		}
	})
}

func (g *Guard) judge(r *http.Request, path string) int {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxToken {
		return http.StatusUnauthorized
	}
	key := sha256.Sum256([]byte(path + "\x00" + token))
	if status, ok := g.remembered(key); ok {
		return status
	}
	ctx, cancel := context.WithTimeout(r.Context(), answersWithin)
	defer cancel()
	status, err := g.ask(ctx, token, path)
	if err != nil {
		g.logger.Warn("a reader is refused: the API server could not be asked who it is (rbac-metrics.yaml has the permissions)", "path", path, "error", err)
		return http.StatusServiceUnavailable
	}
	g.remember(key, status)
	return status
}

// ask asks whose token it is, and whether that one may get the path.
func (g *Guard) ask(ctx context.Context, token, path string) (int, error) {
	who, err := g.kube.AuthenticationV1().TokenReviews().Create(ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("reviewing a token: %w", err)
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := who.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	may, err := g.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("reviewing what %s may do: %w", user.Username, err)
	}
	if !may.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

func (g *Guard) remembered(key [sha256.Size]byte) (int, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	known, ok := g.verdicts[key]
	return known.status, ok && g.now().Before(known.until)
}

// remember keeps an answer. Where there is no room, expired answers go first, then refusals, then the rest.
func (g *Guard) remember(key [sha256.Size]byte, status int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	for _, goes := range []func(verdict) bool{
		func(v verdict) bool { return !now.Before(v.until) },
		func(v verdict) bool { return v.status != http.StatusOK },
		func(verdict) bool { return true },
	} {
		for other, v := range g.verdicts {
			if len(g.verdicts) >= maxTokens && goes(v) {
				delete(g.verdicts, other)
			}
		}
	}
	until := now.Add(refusedFor)
	if status == http.StatusOK {
		until = now.Add(allowedFor)
	}
	g.verdicts[key] = verdict{status: status, until: until}
}
