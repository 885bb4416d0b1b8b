package k8stest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// Deny has the server's authorizer refuse a kind of request, such as "create" "pods/eviction", and report that in access
// reviews. "*" is every verb, or every resource but the access reviews.
func (s *Server) Deny(verb, resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied = append(s.denied, [2]string{verb, resource})
}

func (s *Server) denies(verb, resource string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.denied {
		if (d[0] == "*" || d[0] == verb) && (d[1] == "*" || d[1] == resource) {
			return true
		}
	}
	return false
}

// authorize answers a request that is denied, as kube-apiserver words it.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) (denied bool) {
	resource, namespace, name, subresource := parse(r.URL.Path)
	if resource == "selfsubjectaccessreviews" {
		return false
	}
	if subresource != "" {
		resource += "/" + subresource
	}
	verb := map[string]string{http.MethodPost: "create", http.MethodPatch: "patch", http.MethodPut: "update", http.MethodDelete: "delete"}[r.Method]
	switch {
	case verb != "":
	case r.URL.Query().Get("watch") != "":
		verb = "watch"
	case name != "":
		verb = "get"
	default:
		verb = "list"
	}
	if !s.denies(verb, resource) {
		return false
	}
	Respond(w, DeniedBody(verb, resource, namespace))
	return true
}

// DeniedBody is what kube-apiserver answers where its authorizer refuses a request.
func DeniedBody(verb, resource, namespace string) string {
	where := "at the cluster scope"
	if namespace != "" {
		where = fmt.Sprintf("in the namespace %q", namespace)
	}
	message := fmt.Sprintf("%s is forbidden: User \"drydock\" cannot %s resource %q in API group \"\" %s", resource, verb, resource, where)
	body, err := json.Marshal(map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": http.StatusForbidden, "message": message,
	})
	if err != nil {
		panic(err)
	}
	return string(body)
}

// review answers whether a request would be allowed.
func (s *Server) review(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	// Clients send what is built in as protobuf.
	var review authorizationv1.SelfSubjectAccessReview
	if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, &review); err != nil {
		panic(err)
	}
	asked := review.Spec.ResourceAttributes
	resource := asked.Resource
	if asked.Subresource != "" {
		resource += "/" + asked.Subresource
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":%t}}`, !s.denies(asked.Verb, resource))
}
