// Package k8s is Drydock's view of Kubernetes: clients, the marks on a node, watches, the choice of pods and their
// eviction.
package k8s

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"drydock.dev/drydock/k8s/kube"
)

// Options say how to reach the API server.
type Options struct {
	// Kubeconfig is a file's path; empty means KUBECONFIG, then ~/.kube/config, then the pod's service account.
	Kubeconfig string
	Context    string
	// QPS and Burst bound the requests of this process per second; client-go's own default of 5 is far too low.
	QPS       float32
	Burst     int
	UserAgent string
}

// Config resolves the connection in kubectl's order: explicit file, KUBECONFIG, ~/.kube/config, in-cluster.
func Config(o Options) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: o.Context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no Kubernetes cluster: %w (set KUBECONFIG or --kubeconfig, or run inside a cluster)", err)
	}
	config.QPS, config.Burst = o.QPS, o.Burst
	config.UserAgent = o.UserAgent
	// Protobuf takes a fraction of the time to decode. Requests stay JSON, which works for custom resources too.
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{next: next, within: requestWithin} })
	return config, nil
}

// requestWithin is how long one request may take: the time after which kube-apiserver gives one up by itself. A dead connection must not
// hold up an activity that goes on heartbeating.
const requestWithin = time.Minute

// bounded ends the requests that take too long. A watch is not meant to end.
type bounded struct {
	next   http.RoundTripper
	within time.Duration
}

// RoundTrip sends a request; the bound includes the reading of the answer.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Has("watch") {
		return b.next.RoundTrip(r)
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), b.within, fmt.Errorf("no answer within %s", b.within))
	response, err := b.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		if r.Context().Err() == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		cancel()
		return nil, err
	}
	response.Body = cancelled{ReadCloser: response.Body, cancel: cancel}
	return response, nil
}

// WrappedRoundTripper lets client-go find the transport below.
func (b bounded) WrappedRoundTripper() http.RoundTripper { return b.next }

// cancelled is a response body whose Close cancels the request's context.
type cancelled struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (c cancelled) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}

// NewClient builds the client that all activities of a worker share.
func NewClient(o Options) (kube.Interface, error) {
	config, err := Config(o)
	if err != nil {
		return nil, err
	}
	client, err := kube.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building the Kubernetes client: %w", err)
	}
	return client, nil
}
