package migration

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

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

// operator is what is known of a system's operator.
type operator struct{ namespace, deployment string }

// operator finds a system's operator by its lease, and says whether it runs: otherwise is what it is where no lease says so.
func (c Cluster) operator(r *Report, lease string, otherwise operator) operator {
	l := c.lease(lease)
	if l == nil {
		if why := c.Unread[leases]; why != "" {
			r.Problems = append(r.Problems, "Leases cannot be read: "+why)
		}
		r.Found = append(r.Found, fmt.Sprintf("no lease %s: it runs without --leader-elect, or not at all", lease))
		r.Problems = append(r.Problems, fmt.Sprintf("It is not known whether the operator runs, nor in which namespace. The commands assume %s. Stop the operator before you start the bridge", otherwise.namespace))
		return otherwise
	}
	is := operator{l.GetNamespace(), otherwise.deployment}
	holder, held := c.holder(l)
	if !held {
		r.Found = append(r.Found, fmt.Sprintf("lease %s: nobody holds it", named(l)))
		return is
	}
	r.Found = append(r.Found, fmt.Sprintf("lease %s: held by %s", named(l), holder))
	pod, _, _ := strings.Cut(holder, "_")
	if of := podOfDeployment.FindStringSubmatch(pod); of != nil {
		is.deployment = of[1]
	}
	return is
}

// podOfDeployment is the name of a pod of a Deployment, with the Deployment's.
var podOfDeployment = regexp.MustCompile(`^(.+)-[a-z0-9]{5,10}-[a-z0-9]{5}$`)

// lease is the lease of a name, nil if there is none.
func (c Cluster) lease(name string) *unstructured.Unstructured {
	for i := range c.Objects[leases] {
		if l := &c.Objects[leases][i]; l.GetName() == name {
			return l
		}
	}
	return nil
}

// holder is who holds a lease, if somebody does who has renewed it in time.
func (c Cluster) holder(l *unstructured.Unstructured) (holder string, held bool) {
	holder = text(l.Object, "spec", "holderIdentity")
	renewed, err := time.Parse(time.RFC3339, text(l.Object, "spec", "renewTime"))
	seconds, unread := as[int](l.Object, "spec", "leaseDurationSeconds")
	return holder, holder != "" && err == nil && unread == nil && c.At.Sub(renewed) <= time.Duration(seconds)*time.Second
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

// input adds a file of YAML, and reports whether it could.
func (r *Report) input(file, comment string, value any) bool {
	encoded, err := yaml.Marshal(value)
	if err == nil && slices.ContainsFunc(r.Inputs, func(i Input) bool { return i.File == file }) {
		err = errors.New("another file has that name: rename one of what they are made of")
	}
	if err != nil {
		r.Problems = append(r.Problems, fmt.Sprintf("%s cannot be written: %v", file, err))
		return false
	}
	r.Inputs = append(r.Inputs, Input{File: file, Text: "# " + comment + "\n" + string(encoded)})
	return true
}

// oneLine is an error that has a line for each field that is wrong, in one.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// plan adds the input of a plan, and reports whether it is right.
func (r *Report) plan(name, comment string, input map[string]any) bool {
	encoded, err := json.Marshal(input)
	if err == nil {
		_, err = plan.Decode(name, encoded)
	}
	if err != nil {
		r.Problems = append(r.Problems, fmt.Sprintf("%s.yaml is to be mended: %s", name, oneLine(err)))
	}
	return r.input(name+".yaml", comment, input) && err == nil
}
