package chart_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"drydock.dev/drydock/deploy/devstack"
)

// kubelet plays for the release's pods what no kubelet of devcluster does: it runs the worker, as a process of this machine,
// with the pod's variables, its mounted files in a folder of its own, and a token of its account that is bound to the pod. The
// pod is Ready when the process says so. A pod that is told to end has its preStop hook, and then SIGTERM.
type kubelet struct {
	r      *release
	cancel context.CancelFunc
	under  sync.WaitGroup

	mu      sync.Mutex
	workers map[types.UID]*playedPod
}

// playedPod is a worker's or a bridge's process in its pod's place.
type playedPod struct {
	name string
	// ending means that the pod was told to end.
	ending bool
	worker process
	failed error
}

// process is a running program of the release.
type process interface {
	Ready(ctx context.Context) error
	Stop(within time.Duration) error
	Kill()
	Tail() string
}

func newKubelet(r *release) *kubelet {
	ctx, cancel := context.WithCancel(context.Background())
	k := &kubelet{r: r, cancel: cancel, workers: map[types.UID]*playedPod{}}
	k.under.Go(func() { k.run(ctx) })
	r.Cleanup(func() {
		cancel()
		k.under.Wait()
		for _, p := range k.workers {
			if p.worker != nil {
				p.worker.Kill()
			}
		}
	})
	return k
}

func (k *kubelet) run(ctx context.Context) {
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		list, err := k.r.cluster.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component in (worker, bridge)"})
		if err == nil {
			for i := range list.Items {
				k.look(ctx, &list.Items[i])
			}
			k.forget(list.Items)
		} else if ctx.Err() == nil {
			k.r.Logf("kubelet: %v", err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// look starts what is to be started, and stops what is to be stopped.
func (k *kubelet) look(ctx context.Context, pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.workers[pod.UID]
	switch {
	case p == nil && pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil:
		p = &playedPod{name: pod.Name}
		k.workers[pod.UID] = p
		k.under.Go(func() { k.start(ctx, pod, p) })
	case p != nil && pod.DeletionTimestamp != nil && !p.ending:
		k.end(pod.Spec.Containers[0].Lifecycle, p)
	}
}

// forget stops those whose pods went while nobody looked.
func (k *kubelet) forget(pods []corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for uid, p := range k.workers {
		if !p.ending && !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return pod.UID == uid }) {
			k.end(nil, p)
		}
	}
}

func (k *kubelet) start(ctx context.Context, pod *corev1.Pod, p *playedPod) {
	worker, err := k.launch(ctx, pod)
	k.mu.Lock()
	p.worker, p.failed = worker, err
	k.mu.Unlock()
	if err == nil {
		err = k.report(ctx, pod, corev1.ConditionFalse)
	}
	if err == nil {
		err = worker.Ready(ctx)
	}
	if err == nil {
		err = k.report(ctx, pod, corev1.ConditionTrue)
	}
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
		k.mu.Lock()
		p.failed = err
		k.mu.Unlock()
	}
}

// end is under the lock.
func (k *kubelet) end(hooks *corev1.Lifecycle, p *playedPod) {
	p.ending = true
	var sleep time.Duration
	if hooks != nil && hooks.PreStop != nil {
		sleep = time.Duration(hooks.PreStop.Sleep.Seconds) * time.Second
	}
	k.under.Go(func() {
		time.Sleep(sleep) // as the hook does
		k.mu.Lock()
		worker := p.worker
		k.mu.Unlock()
		if worker == nil {
			return
		}
		if err := worker.Stop(20 * time.Second); err != nil {
			k.r.Errorf("the worker of pod %s: %v", p.name, err)
		}
	})
}

// report says what a kubelet would of a pod whose container runs.
func (k *kubelet) report(ctx context.Context, pod *corev1.Pod, ready corev1.ConditionStatus) error {
	now := metav1.Now()
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus) map[string]any {
		return map[string]any{"type": kind, "status": status, "lastTransitionTime": now}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"phase": corev1.PodRunning, "startTime": now,
		"conditions": []any{
			condition(corev1.PodInitialized, corev1.ConditionTrue), condition(corev1.PodReady, ready), condition(corev1.ContainersReady, ready),
		},
	}})
	if err != nil {
		return err
	}
	_, err = k.r.cluster.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// launch starts the pod's process. Of the pod two things do not hold here: files are not below / but below a folder, so that the
// paths of mounts are replaced wherever they are named, and it listens on loopback (by a flag, which beats the file).
func (k *kubelet) launch(ctx context.Context, pod *corev1.Pod) (process, error) {
	container, dir := pod.Spec.Containers[0], filepath.Join(k.r.dir, pod.Name)
	var paths []string
	for _, m := range container.VolumeMounts {
		paths = append(paths, m.MountPath, filepath.Join(dir, m.MountPath))
	}
	here := strings.NewReplacer(paths...)
	config, err := k.mount(ctx, pod, dir, here)
	if err != nil {
		return nil, err
	}
	environment, err := k.environment(ctx, pod, container, here)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := k.writeKubeconfig(ctx, pod, kubeconfig); err != nil {
		return nil, err
	}
	// How it is reached is for the pod to say.
	temporal := &devstack.Temporal{Address: "127.0.0.1:1"}
	switch command := slices.Concat(container.Command, container.Args); {
	case slices.Equal(command, []string{"drydock-worker", "--config", "/etc/drydock/drydock.yaml"}):
		worker, err := devstack.LaunchWorker(devstack.WorkerOptions{
			Dir: dir, Name: "worker", Config: config, Kubeconfig: kubeconfig, Environment: environment, Temporal: temporal,
		})
		if err != nil {
			return nil, err
		}
		return worker, nil
	case command[0] == "drydock-bridge":
		bridge, err := devstack.LaunchBridge(devstack.BridgeOptions{
			Dir: dir, Name: "bridge", Args: command[1:], Kubeconfig: kubeconfig, Environment: environment, Temporal: temporal,
		})
		if err != nil {
			return nil, err
		}
		return bridge, nil
	default:
		return nil, fmt.Errorf("the container runs %q", command)
	}
}

// mount writes the files of a pod's volumes below a folder. It returns the worker's configuration.
func (k *kubelet) mount(ctx context.Context, pod *corev1.Pod, dir string, here *strings.Replacer) (config string, err error) {
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		files, err := k.volume(ctx, pod, m.Name)
		if err != nil {
			return "", err
		}
		if err := os.MkdirAll(filepath.Join(dir, m.MountPath), 0o755); err != nil {
			return "", err
		}
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(dir, m.MountPath, name), []byte(here.Replace(content)), 0o600); err != nil {
				return "", err
			}
			if m.MountPath == "/etc/drydock" && name == "drydock.yaml" {
				config = here.Replace(content)
			}
		}
	}
	return config, nil
}

// remount shows running pods what their Secrets say now, as a kubelet does within its sync period.
func (k *kubelet) remount(pods []corev1.Pod) {
	for i := range pods {
		if _, err := k.mount(k.r.ctx, &pods[i], filepath.Join(k.r.dir, pods[i].Name), strings.NewReplacer()); err != nil {
			k.r.Fatal(err)
		}
	}
}

// volume are the files that a volume of a pod would show.
func (k *kubelet) volume(ctx context.Context, pod *corev1.Pod, name string) (map[string]string, error) {
	core := k.r.cluster.Client.CoreV1()
	i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("the pod has no volume %s", name)
	}
	switch v := pod.Spec.Volumes[i]; {
	case v.ConfigMap != nil:
		m, err := core.ConfigMaps(pod.Namespace).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return m.Data, nil
	case v.Secret != nil:
		secret, err := core.Secrets(pod.Namespace).Get(ctx, v.Secret.SecretName, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		files := map[string]string{}
		for key, value := range secret.Data {
			files[key] = string(value)
		}
		return files, nil
	case v.Projected != nil: // the account's token: the kubeconfig has one
		return nil, nil
	}
	return nil, fmt.Errorf("volume %s is of no kind that is played", name)
}

func (k *kubelet) environment(ctx context.Context, pod *corev1.Pod, container corev1.Container, here *strings.Replacer) ([]string, error) {
	var all []string
	for _, e := range container.Env {
		value := here.Replace(e.Value)
		switch from := e.ValueFrom; {
		case from == nil:
		case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.uid":
			value = string(pod.UID)
		case from.SecretKeyRef != nil:
			secret, err := k.r.cluster.Client.CoreV1().Secrets(pod.Namespace).Get(ctx, from.SecretKeyRef.Name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			value = string(secret.Data[from.SecretKeyRef.Key])
		default:
			return nil, fmt.Errorf("variable %s is of no kind that is played", e.Name)
		}
		all = append(all, e.Name+"="+value)
	}
	return all, nil
}

// writeKubeconfig has a token of the pod's account as its only credential, which ends with the pod.
func (k *kubelet) writeKubeconfig(ctx context.Context, pod *corev1.Pod, file string) error {
	seconds := int64((time.Hour).Seconds())
	token, err := k.r.cluster.Client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: &seconds,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	config, err := clientcmd.LoadFromFile(k.r.cluster.Kubeconfig)
	if err != nil {
		return err
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	return clientcmd.WriteToFile(*config, file)
}

// logs are the ends of all workers' logs.
func (k *kubelet) logs() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []string
	for _, p := range k.workers {
		text := fmt.Sprintf("pod %s, ending %v, %v", p.name, p.ending, p.failed)
		if p.worker != nil {
			text += "\n" + p.worker.Tail()
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// failure is why a pod's worker did not come to be Ready.
func (k *kubelet) failure(pod string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.workers {
		if p.name == pod {
			return p.failed
		}
	}
	return errors.New("it was not started")
}
