package drain

import (
	"testing"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
)

func TestFindPod(t *testing.T) {
	s := k8stest.New(activitytest.Pod("web-1"), activitytest.Pod("web-2", elsewhere))
	d := &Activities{Client: s.Client(t)}
	for pod, want := range map[string]string{
		"default/web-1": "",
		"default/web-2": "pod default/web-2 is on node n2, and not on n1",
		"default/web-3": "there is no pod default/web-3",
		"other/web-1":   "there is no pod other/web-1",
	} {
		found, err := activitytest.Call(t, d.FindPod, PodInput{Node: "n1", Pod: pod})
		if err != nil || found.Missing != want {
			t.Errorf("%s: %q, %v; want %q", pod, found.Missing, err, want)
		}
	}
	s.Deny("list", "pods")
	if _, err := activitytest.Call(t, d.FindPod, PodInput{Node: "n1", Pod: "default/web-1"}); activitytest.ErrorType(err) != api.ErrorMissingPermission {
		t.Errorf("error = %v", err)
	}
}

func TestConsentToOnePodLetsThatOneGo(t *testing.T) {
	t.Parallel()
	other := activitytest.Pod("other", bare)
	d := newDrain(t, activitytest.HeldNode(), activitytest.Pod("lonely", bare), activitytest.Pod("cache", bare, withEmptyDir), other)
	d.in = func(in *Input) {
		in.Consents = []Consent{{Pod: "default/lonely", Force: true}, {Pod: "default/cache", Force: true}, {Pod: "default/cache", DeleteEmptyDir: true}}
	}
	d.start(evict)
	d.untilAsked("lonely/eviction")
	d.untilAsked("cache/eviction")
	d.server.Delete(other)
	if drained, err := d.end(); err != nil || drained.Evicted != 2 {
		t.Errorf("drained %+v, %v; %s", drained, err, d.order())
	}
}

func TestWhatIsBlockedSaysHowToConsent(t *testing.T) {
	t.Parallel()
	stored := activitytest.Pod("cache", bare, withEmptyDir)
	d := newDrain(t, activitytest.HeldNode(), stored).start(evict)
	const want = "no controller would re-create it: consent with deleteEmptyDir and force, or delete the pod " +
		"(drydock consent n1 --pod default/cache --force --delete-emptydir-data --comment WHY)"
	if p := d.reported(); p.Blockers[0].Reason != k8s.LocalStorage || p.Blockers[0].Message != "the pod's emptyDir data would be lost, and "+want {
		t.Errorf("%+v", p.Blockers)
	}
	d.server.Delete(stored)
	if _, err := d.end(); err != nil {
		t.Fatal(err)
	}
}
