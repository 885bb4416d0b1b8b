package migration

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/plan"
)

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// text is a field of an object as text, empty if it has none.
func text(o map[string]any, path ...string) string {
	value, found, err := unstructured.NestedFieldNoCopy(o, path...)
	if !found || err != nil || value == nil {
		return ""
	}
	if s, ok := value.(string); ok {
		return s
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(encoded)
}

// as reads a part of an object into a type.
func as[T any](o map[string]any, path ...string) (value T, err error) {
	part, found, err := unstructured.NestedFieldNoCopy(o, path...)
	if err != nil || !found {
		return value, err
	}
	encoded, err := json.Marshal(part)
	if err == nil {
		err = json.Unmarshal(encoded, &value)
	}
	if err != nil {
		return value, fmt.Errorf("%s: %w", strings.Join(path, "."), err)
	}
	return value, nil
}

// named is an object as people write it.
func named(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// condition is the reason of a condition of an object, and since when it has its status.
func condition(o *unstructured.Unstructured, kind string) (reason string, since time.Time) {
	all, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
	if err != nil {
		return "", time.Time{}
	}
	for _, c := range all {
		if fields, ok := c.(map[string]any); ok && text(fields, "type") == kind {
			since, err := time.Parse(time.RFC3339, text(fields, "lastTransitionTime"))
			if err != nil {
				since = time.Time{} // the system has not said when
			}
			return text(fields, "reason"), since
		}
	}
	return "", time.Time{}
}

// operator says whether a system's operator runs, by its lease, and in which namespace it is: otherwise where no lease says it.
func (c Cluster) operator(r *Report, lease, otherwise string) (namespace string) {
	for i := range c.Objects[leases] {
		l := &c.Objects[leases][i]
		if l.GetName() != lease {
			continue
		}
		holder := text(l.Object, "spec", "holderIdentity")
		renewed, err := time.Parse(time.RFC3339, text(l.Object, "spec", "renewTime"))
		seconds, secondsErr := as[int](l.Object, "spec", "leaseDurationSeconds")
		switch {
		case holder == "" || err != nil || secondsErr != nil || c.At.Sub(renewed) > time.Duration(seconds)*time.Second:
			r.Found = append(r.Found, fmt.Sprintf("lease %s: nobody holds it", named(l)))
		default:
			r.Found = append(r.Found, fmt.Sprintf("lease %s: held by %s, renewed %s", named(l), holder, renewed.UTC().Format(time.RFC3339)))
		}
		return l.GetNamespace()
	}
	if why := c.Unread[leases]; why != "" {
		r.Problems = append(r.Problems, "Leases cannot be read: "+why)
	}
	r.Found = append(r.Found, fmt.Sprintf("no lease %s: it runs without --leader-elect, or not at all", lease))
	r.Problems = append(r.Problems, fmt.Sprintf("Nothing tells whether it runs, and in which namespace: the commands say %s. Stop it before the bridge starts", otherwise))
	return otherwise
}

// objects are those of a kind, and are counted in the report.
func (c Cluster) objects(r *Report, of schema.GroupVersionResource, kind string) []unstructured.Unstructured {
	all, read := c.Objects[of]
	if !read {
		r.Problems = append(r.Problems, fmt.Sprintf("%s objects cannot be read: %s", kind, cmp.Or(c.Unread[of], "nobody has tried")))
		return nil
	}
	r.Found = append(r.Found, number.Of(len(all), kind+" object"))
	return all
}

// field is a field of an object's spec, and what becomes of it.
type field struct {
	path []string
	translation
}

// fields say of each field what becomes of it, and how many objects have it.
func (r *Report) fields(kind string, objects []unstructured.Unstructured, all []field) {
	for _, f := range all {
		using := 0
		for i := range objects {
			if text(objects[i].Object, append([]string{"spec"}, f.path...)...) != "" {
				using++
			}
		}
		if using > 0 {
			r.add(f.translation, kind+" "+strings.Join(f.path, "."), fmt.Sprintf("in %d of %d", using, len(objects)))
		}
	}
}

// settings say of each field that an object has what becomes of it.
func (r *Report) settings(of string, o *unstructured.Unstructured, all []field) {
	for _, f := range all {
		if value := text(o.Object, append([]string{"spec"}, f.path...)...); value != "" {
			r.add(f.translation, of+" "+strings.Join(f.path, "."), bounds.Cut(value, maxValue))
		}
	}
}

// maxValue bounds the text of a setting's value, in bytes.
const maxValue = 200

// input is a file of YAML.
func (r *Report) input(file, comment string, value any) {
	encoded, err := yaml.Marshal(value)
	if err != nil {
		r.Problems = append(r.Problems, fmt.Sprintf("%s cannot be written: %v", file, err))
		return
	}
	r.Inputs = append(r.Inputs, Input{File: file, Text: "# " + comment + "\n" + string(encoded)})
}

// oneLine is an error that has a line for each field that is wrong, in one.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// isReady reports whether a node's kubelet says that it is.
func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// plan is the input of a plan, which is checked.
func (r *Report) plan(name, comment string, input map[string]any) {
	encoded, err := json.Marshal(input)
	if err == nil {
		_, err = plan.Decode(name, encoded)
	}
	if err != nil {
		r.Problems = append(r.Problems, fmt.Sprintf("%s.yaml is to be mended: %s", name, oneLine(err)))
	}
	r.input(name+".yaml", comment, input)
}
