package k8s_test

import (
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/k8s"
)

// FuzzSelection: a selection that compiles selects by both of its parts and by nothing else, whatever is in them.
func FuzzSelection(f *testing.F) {
	for _, seed := range [][3]string{
		{"app=web,tier!=db", "nvidia.com/.*", "app=web"}, {"app in (a,b), c", "", "app=a,c="}, {"!app", "^$", ""},
		{"a=b%00c", "(", "a=b"}, {"a>1,b<2", "[a-z]+/gpu", "a=2,b=1"}, {"app=web&fieldSelector=x", ".", "app=web"}, {"", "cpu", "x=y"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, selector, pattern, text string) {
		set, err := labels.ConvertSelectorToLabelsMap(text)
		if err != nil {
			set = labels.Set{}
		}
		var patterns []string
		if pattern != "" {
			patterns = []string{pattern}
		}
		selection, err := k8s.NewSelection(selector, patterns)
		parsed, selectorErr := labels.Parse(selector)
		compiled, patternErr := regexp.Compile(pattern)
		if wrong := selectorErr != nil || patternErr != nil; wrong || err != nil {
			if wrong != (err != nil) {
				t.Errorf("error %v for selector %v and pattern %v", err, selectorErr, patternErr)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "podSelector: ") && !strings.HasPrefix(err.Error(), "podEvictionFilters: ") {
				t.Errorf("the error does not name its field: %v", err)
			}
			return
		}
		for _, name := range []corev1.ResourceName{"cpu", "nvidia.com/gpu"} {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: set}}
			pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{name: resource.MustParse("1")},
			}}}
			want := parsed.Matches(set) && (pattern == "" || compiled.MatchString(string(name)))
			if got := selection.Selects(pod); got != want {
				t.Errorf("%q, %q select a pod with %q that uses %s: %v, want %v", selector, pattern, set, name, got, want)
			}
		}
	})
}
