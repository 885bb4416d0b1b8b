// Package kubernetes_test holds the shipped permissions to what their files say.
package kubernetes_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

func read(t *testing.T, file string) (text string, objects []runtime.Object) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content))); ; {
		one, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return string(content), objects
		}
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(one, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		objects = append(objects, object)
	}
}

// granted are the permissions of roles, each as "resource.group verb", those of one namespace with its name in front.
func granted(objects []runtime.Object) []string {
	var all []string
	add := func(before string, rules []rbacv1.PolicyRule) {
		for _, r := range rules {
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					for _, verb := range r.Verbs {
						all = append(all, before+strings.TrimSuffix(resource+"."+group, ".")+" "+verb)
					}
				}
			}
		}
	}
	for _, object := range objects {
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			add("", o.Rules)
		case *rbacv1.Role:
			add(o.Namespace+": ", o.Rules)
		}
	}
	return all
}

// What a remediator ships counts for the worker's account without a word of ours.
func TestRemediatorsGrantWhatTheirObjectsNeed(t *testing.T) {
	_, objects := read(t, "rbac-health.yaml")
	for _, object := range objects {
		role, ok := object.(*rbacv1.ClusterRole)
		if !ok || role.AggregationRule == nil {
			continue
		}
		selectors := role.AggregationRule.ClusterRoleSelectors
		if len(selectors) != 1 || selectors[0].MatchLabels["rbac.ext-remediation/aggregate-to-ext-remediation"] != "true" || len(role.Rules) != 0 {
			t.Errorf("%s adds up %v, and has %v", role.Name, selectors, role.Rules)
		}
		return
	}
	t.Error("no ClusterRole adds up what remediators ship")
}

// calls are whom Jobs call, and whether they reach them: the credentials that clouds give away they do not.
var calls = map[string]bool{
	"10.0.0.1:443": true, "192.0.2.1:53": true, "[2001:db8::1]:443": true, "169.254.20.10:53": true,
	"169.254.169.254:80": false, "169.254.170.2:80": false, "169.254.20.10:80": false, "[fe80::a9fe:a9fe]:80": false, "[fd00:ec2::254]:80": false,
}

// reaches reports whether one of the rules lets a pod call an address.
func reaches(t *testing.T, rules []networkingv1.NetworkPolicyEgressRule, to netip.AddrPort) bool {
	t.Helper()
	return slices.ContainsFunc(rules, func(rule networkingv1.NetworkPolicyEgressRule) bool {
		open := len(rule.Ports) == 0 || slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool {
			return p.Port == nil || p.Port.IntValue() == int(to.Port())
		})
		return open && (len(rule.To) == 0 || slices.ContainsFunc(rule.To, func(peer networkingv1.NetworkPolicyPeer) bool {
			if peer.IPBlock == nil {
				t.Errorf("peer %+v is no block of addresses", peer)
				return true
			}
			within := func(cidr string) bool { return netip.MustParsePrefix(cidr).Contains(to.Addr()) }
			return within(peer.IPBlock.CIDR) && !slices.ContainsFunc(peer.IPBlock.Except, within)
		}))
	})
}

// Whoever may create Jobs runs what they like: in a namespace of its own, without a token, and with bounds.
func TestJobsHaveANamespaceOfTheirOwn(t *testing.T) {
	for file, want := range map[string]struct{ namespace, level string }{
		"rbac-jobs.yaml": {"drydock-jobs", "restricted"}, "rbac-work.yaml": {"drydock-work", "privileged"},
	} {
		_, objects := read(t, file)
		var bounded, noToken, closed bool
		for _, object := range objects {
			switch o := object.(type) {
			case *corev1.Namespace:
				bounded = o.Name == want.namespace && o.Labels["pod-security.kubernetes.io/enforce"] == want.level
			case *corev1.ServiceAccount:
				noToken = o.Name == "default" && o.Namespace == want.namespace && o.AutomountServiceAccountToken != nil && !*o.AutomountServiceAccountToken
			case *networkingv1.NetworkPolicy:
				closed = o.Namespace == want.namespace && len(o.Spec.Ingress) == 0 && equality.Semantic.DeepEqual(o.Spec.PodSelector, metav1.LabelSelector{}) &&
					slices.Equal(o.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress})
				for to, reached := range calls {
					if got := reaches(t, o.Spec.Egress, netip.MustParseAddrPort(to)); got != reached {
						t.Errorf("%s: a Job reaches %s: %t", file, to, got)
					}
				}
			case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
				t.Errorf("%s: %T grants Jobs in every namespace", file, o)
			}
		}
		if !bounded || !noToken || !closed {
			t.Errorf("%s: Pod Security labels %v, no token %v, network closed %v", file, bounded, noToken, closed)
		}
	}
}
