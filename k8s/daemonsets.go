package k8s

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
)

// rememberedApps looks a DaemonSet up once per drain: kubectl's filter asks for it with every pod and every pass.
type rememberedApps struct {
	appsclient.AppsV1Interface
	classifier *Classifier
}

func (a rememberedApps) DaemonSets(namespace string) appsclient.DaemonSetInterface {
	return rememberedDaemonSets{
		DaemonSetInterface: a.AppsV1Interface.DaemonSets(namespace), namespace: namespace, classifier: a.classifier,
	}
}

type rememberedDaemonSets struct {
	appsclient.DaemonSetInterface
	namespace  string
	classifier *Classifier
}

func (d rememberedDaemonSets) Get(ctx context.Context, name string, o metav1.GetOptions) (*appsv1.DaemonSet, error) {
	key := d.namespace + "/" + name
	found, known := d.classifier.daemonSets[key]
	if !known {
		daemonSet, err := d.DaemonSetInterface.Get(ctx, name, o)
		if err != nil && !apierrors.IsNotFound(err) {
			d.classifier.unread = fmt.Errorf("reading DaemonSet %s: %w", key, err)
			return nil, err
		}
		found = err == nil
		d.classifier.daemonSets[key] = found
		if found {
			return daemonSet, nil
		}
	}
	if !found {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "daemonsets"}, name)
	}
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: name}}, nil
}
