package health

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"drydock.dev/drydock/k8s/objects"
)

// configGroup is where OpenShift's ClusterVersion is.
const configGroup = "config.openshift.io"

// clusterUpgrade says in words that the cluster is being upgraded: OpenShift's ClusterVersion says so where there is one, and the
// configured signs elsewhere. An object that is not there says nothing.
func (a *Activities) clusterUpgrade(ctx context.Context) (string, error) {
	signs := a.Settings.Upgrades
	version, err := a.Objects.Preferred(ctx, configGroup)
	if err != nil {
		return "", err
	}
	if version != "" {
		kind, err := a.Objects.Resolve(ctx, configGroup+"/"+version, "ClusterVersion")
		switch {
		case errors.Is(err, objects.ErrNoKind):
		case err != nil:
			return "", err
		default:
			versions, err := a.Objects.List(ctx, kind, "", "")
			if err != nil {
				return "", fmt.Errorf("listing ClusterVersions: %w", err)
			}
			for _, v := range versions {
				if c := conditionOf(v.Object, "Progressing"); c.status == "True" {
					return fmt.Sprintf("ClusterVersion %s is progressing: %.200s", v.GetName(), c.message), nil
				}
			}
		}
	}
	for _, sign := range signs {
		if said, err := a.saysUpgrade(ctx, sign); said != "" || err != nil {
			return said, err
		}
	}
	return "", nil
}

func (a *Activities) saysUpgrade(ctx context.Context, sign UpgradeSign) (string, error) {
	kind, err := a.Objects.Resolve(ctx, sign.APIVersion, sign.Kind)
	if errors.Is(err, objects.ErrNoKind) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	object, err := a.Objects.Get(ctx, kind, sign.Namespace, sign.Name)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading %s %s: %w", sign.Kind, sign.Name, err)
	}
	if c := conditionOf(object.Object, sign.Type); c.status == sign.Status {
		return fmt.Sprintf("condition %s of %s %s is %s: %.200s", sign.Type, sign.Kind, sign.Name, c.status, c.message), nil
	}
	return "", nil
}

// condition is one of an object's status; the zero value is one that it does not have.
type condition struct{ status, message string }

func conditionOf(object map[string]any, name string) condition {
	all, _, err := unstructured.NestedSlice(object, "status", "conditions")
	if err != nil {
		return condition{}
	}
	for _, one := range all {
		if c, ok := one.(map[string]any); ok && c["type"] == name {
			status, _ := c["status"].(string)   //nolint:errcheck // one of another type says nothing
			message, _ := c["message"].(string) //nolint:errcheck // the same
			return condition{status, message}
		}
	}
	return condition{}
}
