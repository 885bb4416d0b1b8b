package site

import (
	"os"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/api"
)

// WorkNamespace is a namespace in which the worker may run the Jobs of works, by the role that Drydock ships.
func (s *Site) WorkNamespace() string {
	s.Helper()
	ns := s.Namespace()
	objects, err := ObjectsOfAll([]string{"../../../deploy/kubernetes/rbac-work.yaml"})
	s.NoError(err)
	for _, object := range objects {
		switch o := object.(type) {
		case *rbacv1.Role:
			o.Namespace = ns
			_, err = s.Kube.RbacV1().Roles(ns).Create(s.Ctx, o, metav1.CreateOptions{})
		case *rbacv1.RoleBinding:
			o.Namespace, o.Subjects = ns, []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: accountName, Namespace: "drydock"}}
			_, err = s.Kube.RbacV1().RoleBindings(ns).Create(s.Ctx, o, metav1.CreateOptions{})
		}
		s.NoError(err)
	}
	return ns
}

// ExampleJob is a shipped manifest of a Job, played by the nodes as the annotations say.
func (s *Site) ExampleJob(name string, annotations map[string]string) string {
	s.Helper()
	text, err := os.ReadFile("../../../deploy/kubernetes/examples/" + name + "-job.yaml")
	s.NoError(err)
	var job batchv1.Job
	s.NoError(yaml.UnmarshalStrict(text, &job))
	job.Spec.Template.Annotations = annotations
	text, err = yaml.Marshal(job)
	s.NoError(err)
	return s.File(name+"-job.yaml", string(text))
}

// WorksOf are the Jobs that were created in a namespace.
func (s *Site) WorksOf(ns string) (created []string) {
	for _, r := range s.Requests("/jobs", func(r Request) bool { return r.Verb == "create" && r.Object.Namespace == ns && r.Status.Code < 300 }) {
		created = append(created, r.Object.Name)
	}
	return created
}

// JobsIn are the Jobs of a namespace.
func (s *Site) JobsIn(ns string) []batchv1.Job {
	s.Helper()
	list, err := s.Kube.BatchV1().Jobs(ns).List(s.Ctx, metav1.ListOptions{})
	s.NoError(err)
	return list.Items
}

// WorkRuns reports whether a maintenance has work under way.
func WorkRuns(status api.Status) bool { return status.RunningWork() != nil }
