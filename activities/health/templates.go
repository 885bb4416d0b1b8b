package health

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/objects"
	rules "drydock.dev/drydock/rules/health"
)

const (
	templateSuffix = "Template"
	// multipleAnnotation on a template says that its remediator takes several objects for one node, of any names.
	multipleAnnotation = "remediation.medik8s.io/multiple-templates-support"
	// metal3Kind may be in the namespace of OpenShift's Machines only.
	metal3Kind, metal3Namespace = "Metal3RemediationTemplate", "openshift-machine-api"
)

// problem is why nothing can be made from a template; the zero value is none. Reason is one of the condition Disabled.
type problem struct{ Reason, Why string }

// templateState is what was found of a template, and when.
type templateState struct {
	problem problem
	at      time.Time
}

// isKnown reports whether it counts.
func (t templateState) isKnown(now time.Time) bool { return now.Sub(t.at) < knownFor }

// template is what remediation objects are made from.
type template struct {
	// makes is the kind of the objects.
	makes     objects.Kind
	namespace string
	// spec is that of the objects, nil if the template has none.
	spec any
	// multiple: an object's name is nobody's business.
	multiple bool
}

func refOf(ref rules.TemplateRef) string {
	if ref.Namespace == "" {
		return fmt.Sprintf("%s %s", ref.Kind, ref.Name)
	}
	return fmt.Sprintf("%s %s/%s", ref.Kind, ref.Namespace, ref.Name)
}

// readTemplate finds a template and what it makes. An error is one that may be over the next time.
func (a *Activities) readTemplate(ctx context.Context, ref rules.TemplateRef) (template, problem, error) {
	missing := func(why string) (template, problem, error) {
		return template{}, problem{rules.DisabledTemplateNotFound, why}, nil
	}
	invalid := func(why string) (template, problem, error) {
		return template{}, problem{rules.DisabledTemplateInvalid, why}, nil
	}
	kind, err := a.Objects.Resolve(ctx, ref.APIVersion, ref.Kind)
	switch {
	case errors.Is(err, objects.ErrNoKind):
		return missing(fmt.Sprintf("the API server has no kind %s in %s: install the remediator", ref.Kind, ref.APIVersion))
	case err != nil:
		return template{}, problem{}, err
	case kind.Namespaced && ref.Namespace == "":
		return missing(fmt.Sprintf("template %s has no namespace, and its kind has one", refOf(ref)))
	}
	object, err := a.Objects.Get(ctx, kind, ref.Namespace, ref.Name)
	switch {
	case apierrors.IsNotFound(err):
		return missing(fmt.Sprintf("there is no template %s", refOf(ref)))
	case k8s.Denied(ctx, a.Objects.Kube(), err):
		return missing(fmt.Sprintf("the worker's account may not read template %s: label the remediator's ClusterRole %s", refOf(ref), aggregateLabel))
	case err != nil:
		return template{}, problem{}, fmt.Errorf("reading template %s: %w", refOf(ref), err)
	}
	inner, found, err := unstructured.NestedMap(object.Object, "spec", "template")
	makes, cut := strings.CutSuffix(ref.Kind, templateSuffix)
	switch {
	case err != nil || !found:
		return invalid(fmt.Sprintf("template %s has no spec.template", refOf(ref)))
	case !cut:
		return invalid(fmt.Sprintf("the kind of template %s does not end in %s", refOf(ref), templateSuffix))
	case ref.Kind == metal3Kind && ref.Namespace != metal3Namespace:
		return invalid(fmt.Sprintf("template %s has to be in namespace %s", refOf(ref), metal3Namespace))
	}
	of, err := a.Objects.Resolve(ctx, ref.APIVersion, makes)
	switch {
	case errors.Is(err, objects.ErrNoKind):
		return invalid(fmt.Sprintf("the API server has no kind %s in %s, which template %s is for", makes, ref.APIVersion, refOf(ref)))
	case err != nil:
		return template{}, problem{}, err
	}
	_, multiple := object.GetAnnotations()[multipleAnnotation]
	return template{makes: of, namespace: ref.Namespace, spec: inner["spec"], multiple: multiple}, problem{}, nil
}

// aggregateLabel gives the worker's account what a ClusterRole allows.
const aggregateLabel = "rbac.ext-remediation/aggregate-to-ext-remediation=true"
