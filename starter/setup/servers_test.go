package setup

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s/k8stest"
)

// changes are what was sent to either server to change something, in order.
type changes struct {
	mu  sync.Mutex
	all []string
}

func (c *changes) add(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, fmt.Sprintf(format, args...))
}

// take returns the changes since the last time.
func (c *changes) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.all
	c.all = nil
	return all
}

// temporalServer is a Temporal with one namespace at most, which answers what setup asks of one.
type temporalServer struct {
	workflowservice.UnimplementedWorkflowServiceServer
	operatorservice.UnimplementedOperatorServiceServer
	*changes

	mu         sync.Mutex
	exists     bool
	retention  time.Duration
	attributes map[string]enums.IndexedValueType
	// running are the numbers of running workflows by type, schedules the task queues of schedules by ID.
	running   map[string]int64
	schedules map[string]string
	// refused are the calls that are refused, by the names of their methods.
	refused map[string]error
	// unaware is how many calls a namespace is not known for once it was made.
	unaware int
	// queries are those of counts.
	queries []string
}

const fleet = "fleet"

// start serves Temporal's API, and returns its address.
func (s *temporalServer) start(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(s.intercept))
	workflowservice.RegisterWorkflowServiceServer(server, s)
	operatorservice.RegisterOperatorServiceServer(server, s)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// intercept refuses what is refused, and what is asked of a namespace that is not there.
func (s *temporalServer) intercept(ctx context.Context, request any, call *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	method := call.FullMethod[strings.LastIndex(call.FullMethod, "/")+1:]
	err := s.refused[method]
	if of, ok := request.(interface{ GetNamespace() string }); ok && err == nil && method != "RegisterNamespace" {
		if s.unaware--; !s.exists || s.unaware >= 0 {
			err = serviceerror.NewNamespaceNotFound(of.GetNamespace())
		}
	}
	var answer any
	if err == nil {
		answer, err = next(ctx, request)
	}
	if err != nil {
		return nil, serviceerror.ToStatus(err).Err()
	}
	return answer, nil
}

func (s *temporalServer) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{ServerVersion: "1.32.1"}, nil
}

func (s *temporalServer) DescribeNamespace(_ context.Context, r *workflowservice.DescribeNamespaceRequest) (*workflowservice.DescribeNamespaceResponse, error) {
	return &workflowservice.DescribeNamespaceResponse{
		NamespaceInfo: &namespacepb.NamespaceInfo{Name: r.GetNamespace(), Id: "id"},
		Config:        &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(s.retention)},
	}, nil
}

func (s *temporalServer) RegisterNamespace(_ context.Context, r *workflowservice.RegisterNamespaceRequest) (*workflowservice.RegisterNamespaceResponse, error) {
	s.exists, s.retention = true, r.GetWorkflowExecutionRetentionPeriod().AsDuration()
	s.add("create namespace %s, %s", r.GetNamespace(), s.retention)
	return &workflowservice.RegisterNamespaceResponse{}, nil
}

func (s *temporalServer) UpdateNamespace(_ context.Context, r *workflowservice.UpdateNamespaceRequest) (*workflowservice.UpdateNamespaceResponse, error) {
	s.retention = r.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	s.add("retain %s", s.retention)
	return &workflowservice.UpdateNamespaceResponse{}, nil
}

func (s *temporalServer) ListSearchAttributes(context.Context, *operatorservice.ListSearchAttributesRequest) (*operatorservice.ListSearchAttributesResponse, error) {
	return &operatorservice.ListSearchAttributesResponse{CustomAttributes: maps.Clone(s.attributes)}, nil
}

func (s *temporalServer) AddSearchAttributes(_ context.Context, r *operatorservice.AddSearchAttributesRequest) (*operatorservice.AddSearchAttributesResponse, error) {
	if s.attributes == nil {
		s.attributes = map[string]enums.IndexedValueType{}
	}
	maps.Copy(s.attributes, r.GetSearchAttributes())
	s.add("add attributes %s", strings.Join(slices.Sorted(maps.Keys(r.GetSearchAttributes())), " "))
	return &operatorservice.AddSearchAttributesResponse{}, nil
}

func (s *temporalServer) CountWorkflowExecutions(_ context.Context, r *workflowservice.CountWorkflowExecutionsRequest) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	s.queries = append(s.queries, r.GetQuery())
	for kind, n := range s.running {
		if strings.Contains(r.GetQuery(), "'"+kind+"'") {
			return &workflowservice.CountWorkflowExecutionsResponse{Count: n}, nil
		}
	}
	return &workflowservice.CountWorkflowExecutionsResponse{}, nil
}

func (s *temporalServer) ListSchedules(context.Context, *workflowservice.ListSchedulesRequest) (*workflowservice.ListSchedulesResponse, error) {
	r := &workflowservice.ListSchedulesResponse{}
	for _, id := range slices.Sorted(maps.Keys(s.schedules)) {
		r.Schedules = append(r.Schedules, &schedulepb.ScheduleListEntry{ScheduleId: id, Info: &schedulepb.ScheduleListInfo{}})
	}
	return r, nil
}

// gone is the task queue of a schedule that is deleted between its listing and its description.
const gone = "gone"

func (s *temporalServer) DescribeSchedule(_ context.Context, r *workflowservice.DescribeScheduleRequest) (*workflowservice.DescribeScheduleResponse, error) {
	queue := s.schedules[r.GetScheduleId()]
	if queue == gone {
		return nil, serviceerror.NewNotFound("no such schedule")
	}
	action := &workflowpb.NewWorkflowExecutionInfo{
		WorkflowId: r.GetScheduleId(), WorkflowType: &commonpb.WorkflowType{Name: api.PlanRunType}, TaskQueue: &taskqueuepb.TaskQueue{Name: queue},
	}
	return &workflowservice.DescribeScheduleResponse{Schedule: &schedulepb.Schedule{
		Spec: &schedulepb.ScheduleSpec{}, Action: &schedulepb.ScheduleAction{Action: &schedulepb.ScheduleAction_StartWorkflow{StartWorkflow: action}},
		Policies: &schedulepb.SchedulePolicies{}, State: &schedulepb.ScheduleState{},
	}, Info: &schedulepb.ScheduleInfo{}}, nil
}

// apiServer is an API server that gives permissions by the roles that are applied to it.
type apiServer struct {
	*changes
	mu    sync.Mutex
	rules []rbacv1.PolicyRule
	// all: every permission is granted.
	all bool
	// refused are the resources that nobody may apply, and "impersonate" where nobody may ask as another account.
	refused []string
	// slow is how many questions are answered before a new rule counts.
	slow int
	// accounts are those that permissions were asked for.
	accounts map[string]bool
}

// start serves the API and returns a kubeconfig for it.
func (k *apiServer) start(t *testing.T) string {
	t.Helper()
	k.accounts = map[string]bool{}
	server := httptest.NewServer(k)
	t.Cleanup(server.Close)
	return kubeconfig(t, server.URL)
}

func kubeconfig(t *testing.T, url string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "prod", "clusters": [{"name": "c", "cluster": {"server": %q}}],
		"users": [{"name": "u", "user": {}}], "contexts": [{"name": "prod", "context": {"cluster": "c", "user": "u"}}]}`, url)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (k *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	account := r.Header.Get("Impersonate-User")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	at := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	resource := at[len(at)-1]
	w.Header().Set("Content-Type", "application/json")
	switch {
	case account != "" && slices.Contains(k.refused, "impersonate"):
		k8stest.Respond(w, k8stest.DeniedBody("impersonate", "users", ""))
	case r.URL.Path == "/version":
		io.WriteString(w, `{"major": "1", "minor": "36", "gitVersion": "v1.36.1"}`)
	case resource == "selfsubjectreviews":
		if account == "" {
			account = "admin"
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","status":{"userInfo":{"username":%q}}}`, account)
	case resource == "selfsubjectaccessreviews":
		var review authorizationv1.SelfSubjectAccessReview
		if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, &review); err != nil {
			panic(err)
		}
		k.accounts[account] = true
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":%t}}`, k.allows(review.Spec.ResourceAttributes))
	case r.Method == http.MethodPatch && slices.Contains(k.refused, at[len(at)-2]):
		k8stest.Respond(w, k8stest.DeniedBody("patch", at[len(at)-2], ""))
	case r.Method == http.MethodPatch:
		k.apply(w, r, at[len(at)-2]+"/"+resource, body)
	default:
		http.Error(w, "not a request this server knows", http.StatusNotImplemented)
	}
}

func (k *apiServer) allows(asked *authorizationv1.ResourceAttributes) bool {
	if k.slow--; k.slow >= 0 {
		return k.all
	}
	resource := strings.TrimSuffix(asked.Resource+"/"+asked.Subresource, "/")
	return k.all || slices.ContainsFunc(k.rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.APIGroups, asked.Group) && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, asked.Verb)
	})
}

// apply takes an object as server-side apply sends it.
func (k *apiServer) apply(w http.ResponseWriter, r *http.Request, name string, body []byte) {
	if q := r.URL.Query(); q.Get("fieldManager") != "drydock-setup" || q.Get("force") != "true" || r.Header.Get("Impersonate-User") != "" {
		http.Error(w, "it is applied by the person who runs setup, as drydock-setup", http.StatusBadRequest)
		return
	}
	var role rbacv1.ClusterRole
	if err := json.Unmarshal(body, &role); err != nil {
		panic(err)
	}
	k.rules = append(k.rules, role.Rules...)
	k.add("apply %s", name)
	w.Write(body)
}
