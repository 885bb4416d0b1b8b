package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// request is a request of the worker to the API server.
type request struct {
	method string
	path   string
	query  url.Values
	body   []byte
}

func (r *request) String() string { return r.method + " " + r.path }

func (r *request) watches() bool {
	return r.query.Get("watch") == "true" || r.query.Get("watch") == "1"
}

// ends reports a request to end a pod the UID that it insists on.
func (r *request) ends() (uid string) {
	var body struct {
		Preconditions *metav1.Preconditions `json:"preconditions"`
		DeleteOptions *metav1.DeleteOptions `json:"deleteOptions"`
	}
	if json.Unmarshal(r.body, &body) != nil {
		return ""
	}
	p := body.Preconditions
	if body.DeleteOptions != nil {
		p = body.DeleteOptions.Preconditions
	}
	if p == nil || p.UID == nil {
		return ""
	}
	return string(*p.UID)
}

// apiProxy carries the requests of a lane's worker to the API server and keeps a log of those that end pods. All nodes
// are for the worker those of its lane.
type apiProxy struct {
	board    *switchboard
	selector string
	token    string
	target   *url.URL
	upstream *http.Transport
	// bearer is the API server's token, for a request that came with this proxy's.
	bearer string
	server *httptest.Server

	mu sync.Mutex
	// uids are those of the pods to be ended, by the audit ID that the API server gave the request.
	uids map[string]string
	// written are the requests to change a node, or to end a pod.
	written []string
	// streams are the running watches, with what ends each.
	streams map[*request]context.CancelFunc
}

// connKey finds a request's connection, so that it can be dropped.
type connKey struct{}

func newAPIProxy(kubeconfig, selector string, board *switchboard) (*apiProxy, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	p := &apiProxy{
		board: board, selector: selector, token: rand.Text(), target: target, bearer: config.BearerToken,
		upstream: &http.Transport{TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true},
		uids:     map[string]string{}, streams: map[*request]context.CancelFunc{},
	}
	p.server = httptest.NewUnstartedServer(p)
	p.server.EnableHTTP2 = true
	p.server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.server.StartTLS()
	return p, nil
}

func (p *apiProxy) close() {
	p.server.Config.Close() // and not the test server's own Close, which waits for watches
	p.upstream.CloseIdleConnections()
}

// writeKubeconfig makes a file by which a worker reaches the API server through the proxy.
func (p *apiProxy) writeKubeconfig(file string) error {
	config := clientcmdapi.NewConfig()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	config.Clusters["chaos"] = &clientcmdapi.Cluster{Server: p.server.URL, CertificateAuthorityData: ca}
	config.AuthInfos["chaos"] = &clientcmdapi.AuthInfo{Token: p.token}
	config.Contexts["chaos"] = &clientcmdapi.Context{Cluster: "chaos", AuthInfo: "chaos"}
	config.CurrentContext = "chaos"
	return clientcmd.WriteToFile(*config, file)
}

// ServeHTTP carries one request.
func (p *apiProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+p.token {
		http.Error(w, "not this proxy's token", http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		hangUp(r)
	}
	in := &request{method: r.Method, path: r.URL.Path, query: r.URL.Query(), body: body}
	p.note(in)
	t := p.board.Load()
	caught := t != nil && t.request(in)
	if caught && t.cell.when == before {
		if t.cell.kind.onAPI() {
			t.spoil(w, r)
			return
		}
		t.hit()
		if t.cell.kind == killWorker || t.cell.kind == killBridge {
			hangUp(r) // whoever asked is dead, and had not asked yet
		}
		if r.Context().Err() != nil {
			hangUp(r) // the worker no longer waits for this request, and may have sent it again
		}
	}
	// What has reached the API server is done by it whatever becomes of the worker. One that gives an eviction up halfway
	// counts it under the budget for two minutes.
	ctx := context.WithoutCancel(r.Context())
	if in.watches() {
		var stop func()
		ctx, stop = p.stoppable(r.Context(), in)
		defer stop()
	}
	response, err := p.forward(ctx, r, in)
	if err != nil {
		hangUp(r)
	}
	defer response.Body.Close()
	if caught && t.cell.when == after {
		if t.cell.kind.onAPI() {
			t.spoil(w, r)
			return
		}
		t.hit()
	}
	answer(w, response)
}

// note keeps a request to change a node, or to end a pod.
func (p *apiProxy) note(r *request) {
	if r.method == http.MethodGet || !strings.HasPrefix(r.path, "/api/v1/nodes") && !evicts(r) && !deletesPod(r) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.written = append(p.written, r.String())
}

// writes are the requests to change a node, or to end a pod.
func (p *apiProxy) writes() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.written)
}

// forward asks the API server and notes which pod the request was to end.
func (p *apiProxy) forward(ctx context.Context, r *http.Request, in *request) (*http.Response, error) {
	if allNodes(in) || allObjects(in) {
		in.query.Set("labelSelector", p.selector)
	}
	to := *p.target
	to.Path, to.RawQuery = in.path, in.query.Encode()
	out, err := http.NewRequestWithContext(ctx, in.method, to.String(), bytes.NewReader(in.body))
	if err != nil {
		return nil, err
	}
	out.Header = r.Header.Clone()
	out.Header.Del("Authorization")
	out.Header.Del("Accept-Encoding")
	if p.bearer != "" {
		out.Header.Set("Authorization", "Bearer "+p.bearer)
	}
	if len(in.body) == 0 {
		out.Body, out.ContentLength = http.NoBody, 0
	}
	response, err := p.upstream.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	if uid := in.ends(); uid != "" {
		p.mu.Lock()
		p.uids[response.Header.Get("Audit-Id")] = uid
		p.mu.Unlock()
	}
	return response, nil
}

// answer passes the API server's answer on as it comes.
func answer(w http.ResponseWriter, response *http.Response) {
	for key, values := range response.Header {
		if key != "Connection" && key != "Transfer-Encoding" {
			w.Header()[key] = values
		}
	}
	w.WriteHeader(response.StatusCode)
	flush := http.NewResponseController(w)
	buffer := make([]byte, 64<<10)
	for {
		n, err := response.Body.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return
			}
			_ = flush.Flush()
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// stoppable lets a watch be ended by breakWatches.
func (p *apiProxy) stoppable(ctx context.Context, watch *request) (stoppable context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams[watch] = cancel
	return ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		cancel()
		delete(p.streams, watch)
	}
}

// breakWatches ends the watches that are wanted, which begin again with a new request.
func (p *apiProxy) breakWatches(wanted func(*request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for watch, cancel := range p.streams {
		if wanted(watch) {
			cancel()
		}
	}
}

// uidOf is the UID of the pod that an audited request was to end.
func (p *apiProxy) uidOf(auditID string) (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	uid, ok := p.uids[auditID]
	return uid, ok
}

func allNodes(r *request) bool {
	return r.method == http.MethodGet && r.path == "/api/v1/nodes" && !strings.Contains(r.query.Get("fieldSelector"), "metadata.name")
}

// hangUp closes the request's connection, and with it all that goes over it.
func hangUp(r *http.Request) {
	if conn, ok := r.Context().Value(connKey{}).(net.Conn); ok {
		if secure, ok := conn.(*tls.Conn); ok {
			conn = secure.NetConn() // no farewell
		}
		conn.Close()
	}
	panic(http.ErrAbortHandler)
}

func writeStatus(w http.ResponseWriter, status metav1.Status) {
	status.Kind, status.APIVersion = "Status", "v1"
	w.Header().Set("Content-Type", "application/json")
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(status.Details.RetryAfterSeconds))
	}
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}
