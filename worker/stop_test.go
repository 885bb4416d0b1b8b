package worker

import (
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// A pod is killed only once its worker has had all the time that it may take: for workflows and for activities one after the
// other, and as long again for what goes on beside them.
func TestThePodOfAWorkerHasTimeToStop(t *testing.T) {
	text, err := os.ReadFile("../deploy/kubernetes/base/worker.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range strings.Split(string(text), "\n---\n") {
		if !strings.Contains(one, "kind: Deployment") {
			continue
		}
		var deployment appsv1.Deployment
		if err := yaml.UnmarshalStrict([]byte(one), &deployment); err != nil {
			t.Fatal(err)
		}
		pod := deployment.Spec.Template.Spec
		grace := time.Duration(*pod.TerminationGracePeriodSeconds-pod.Containers[0].Lifecycle.PreStop.Sleep.Seconds) * time.Second
		if grace < 3*stopTimeout {
			t.Errorf("the pod is killed after %s, and the worker may take %s", grace, 3*stopTimeout)
		}
		return
	}
	t.Fatal("there is no Deployment")
}
