package tell

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

// objects begin an argument that names a NodeMaintenance of Kubernetes instead of a node.
var objects = []string{"nm/", "nodemaintenance/", "nodemaintenances/", "nodemaintenances.drydock.dev/"}

// aboutObjects is in the help of those.
const aboutObjects = `Where a NodeMaintenance of Kubernetes asked for it, nm/NAME instead of NODE says it by the object: with your rights on
Kubernetes, and without Temporal.`

// takenWithin is how long a bridge that runs needs to take a message.
const takenWithin = 30 * time.Second

const (
	lookEvery = 300 * time.Millisecond
	// eventWithin is how long after a message its event may come.
	eventWithin = 3 * time.Second
	// clocks is how far this clock and that of the bridge may be apart.
	clocks = time.Minute
)

func objectOf(argument string) (name string, is bool) {
	for _, prefix := range objects {
		if name, is := strings.CutPrefix(argument, prefix); is {
			return name, true
		}
	}
	return "", false
}

// annotate sends the message by an annotation of an object: with the caller's rights on Kubernetes, and without Temporal.
func (o *order) annotate(ctx context.Context, name string) error {
	if !slices.Contains(v1alpha1.Messages(), o.name()) {
		return exit.UsageError("%s: an object takes %s; name its node instead", o.verb(), strings.Join(v1alpha1.Messages(), ", "))
	}
	var given []string
	o.flags.Visit(func(f *pflag.Flag) {
		if o.flags.Lookup(f.Name) == f && !slices.Contains([]string{"comment", "kubeconfig", "context", "yes"}, f.Name) {
			given = append(given, "--"+f.Name)
		}
	})
	if len(given) > 0 {
		return exit.UsageError("%s: not for the maintenance of an object, which takes a comment alone", strings.Join(given, ", "))
	}
	if o.why != "" && strings.TrimSpace(o.comment) == "" {
		return exit.UsageError("%s", o.why)
	}
	config, _, err := o.app.Kubernetes(invocation.Cluster{})
	if err != nil {
		return err
	}
	client, err := kube.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	object := object{kube: client, name: name}
	since := time.Now().Add(-clocks)
	uid, err := object.say(ctx, o.name(), o.comment)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.app.Stderr, "Waiting until the bridge has taken %s.\n", o.name())
	is, err := object.awaitTaken(ctx, o.name())
	if err != nil {
		return exit.OrStopped(ctx, err)
	}
	note := fmt.Sprintf("%s is taken", o.name())
	if said := object.effect(ctx, uid, o.name(), since); said != nil {
		note = said.Message
		if said.Type == corev1.EventTypeWarning {
			return exit.Hint(fmt.Errorf("%s: %s", name, terminal.OneLine(note)), "kubectl describe nodemaintenance %s", name)
		}
	}
	fmt.Fprintf(o.app.Stdout, "%s: %s; it is %s\n", name, terminal.OneLine(note), is.Status.Phase)
	return nil
}

type object struct {
	kube kube.Interface
	name string
}

func (o object) path() []string {
	return []string{"apis", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, "nodemaintenances", o.name}
}

func (o object) say(ctx context.Context, message, comment string) (types.UID, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1alpha1.Annotation(message): comment}}})
	if err != nil {
		return "", err
	}
	var is v1alpha1.NodeMaintenance
	result := o.kube.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath(o.path()...).Body(patch).Do(ctx)
	err = result.Error()
	switch {
	case apierrors.IsNotFound(err):
		return "", exit.Hint(fmt.Errorf("nodemaintenance %s: the API server has none", o.name), "kubectl get nodemaintenances")
	case err != nil:
		return "", fmt.Errorf("%s of nodemaintenance %s: %w", message, o.name, err)
	}
	body, err := result.Raw()
	if err == nil {
		err = json.Unmarshal(body, &is)
	}
	return is.UID, err
}

// awaitTaken waits until the annotation is gone, or the object is.
func (o object) awaitTaken(ctx context.Context, message string) (is v1alpha1.NodeMaintenance, err error) {
	late := fmt.Errorf("nodemaintenance %s: no bridge has taken %s within %s; the annotation stays, and it takes it once it runs", o.name, message, takenWithin)
	ctx, cancel := context.WithTimeoutCause(ctx, takenWithin, late)
	defer cancel()
	err = wait.PollUntilContextCancel(ctx, lookEvery, true, func(ctx context.Context) (bool, error) {
		body, err := o.kube.CoreV1().RESTClient().Get().AbsPath(o.path()...).Do(ctx).Raw()
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, nil //nolint:nilerr // the API server may be away for a moment
		}
		is = v1alpha1.NodeMaintenance{}
		err = json.Unmarshal(body, &is)
		_, there := is.Annotations[v1alpha1.Annotation(message)]
		return !there, err
	})
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return is, err
}

// effect is the event by which the bridge says what came of a message, which it writes a moment after it has taken the message; nil where
// there is none, or it cannot be read.
func (o object) effect(ctx context.Context, uid types.UID, message string, since time.Time) (said *corev1.Event) {
	ctx, cancel := context.WithTimeout(ctx, eventWithin)
	defer cancel()
	_ = wait.PollUntilContextCancel(ctx, lookEvery, true, func(ctx context.Context) (bool, error) {
		var list corev1.EventList
		body, err := o.kube.CoreV1().RESTClient().Get().AbsPath("api", "v1", "namespaces", metav1.NamespaceDefault, "events").
			Param("fieldSelector", fields.OneTermEqualSelector("involvedObject.uid", string(uid)).String()).
			SetHeader("Accept", "application/json").Do(ctx).Raw()
		if err == nil {
			err = json.Unmarshal(body, &list)
		}
		if err != nil {
			return false, err // whoever may say something need not be allowed to read events
		}
		for _, e := range list.Items {
			if strings.HasPrefix(e.Message, message+" by ") && !lastOf(e).Before(since) && (said == nil || lastOf(*said).Before(lastOf(e))) {
				said = &e
			}
		}
		return said != nil, nil
	})
	return said
}

func lastOf(e corev1.Event) time.Time {
	if e.Series != nil {
		return e.Series.LastObservedTime.Time
	}
	return e.EventTime.Time
}
