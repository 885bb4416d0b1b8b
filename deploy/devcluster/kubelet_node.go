package main

import (
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/version"
)

const (
	// notReadyLabel is what a test puts on a node to take it down.
	notReadyLabel = "devcluster.drydock.dev/not-ready"

	// heartbeatEvery is rare: in between, its lease shows that a node lives.
	heartbeatEvery  = 10 * time.Minute
	heartbeatJitter = 10 * time.Second
)

// object is a part of a patch.
type object = map[string]any

// healthyConditions are what a kubelet in good health reports.
var healthyConditions = []corev1.NodeCondition{
	{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
		Reason: "KubeletReady", Message: "kubelet is posting ready status"},
	{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse,
		Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"},
	{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse,
		Reason: "KubeletHasNoDiskPressure", Message: "kubelet has no disk pressure"},
	{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse,
		Reason: "KubeletHasSufficientPID", Message: "kubelet has sufficient PID available"},
	{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse,
		Reason: "RouteCreated", Message: "RouteController created a route"},
}

// nodeStep is what a kubelet has to report about its node now, nil for nothing,
// and when to look again if nothing changes until then, 0 for never.
func nodeStep(node *corev1.Node, now time.Time) (status object, again time.Duration) {
	down := node.Labels[notReadyLabel]
	mustBeDown := down == "true" || down == "unknown"
	ready := nodeReady(node) == corev1.ConditionTrue
	switch {
	case node.Status.Phase != corev1.NodeRunning:
		return firstReport(node, now), 0
	case mustBeDown && ready:
		return notReadyReport(down, now), 0
	case mustBeDown:
		return nil, 0
	case !ready:
		return recovery(node, now), 0
	}
	if wait := heartbeatDue(node).Sub(now); wait > 0 {
		return nil, wait
	}
	return heartbeat(node, now), 0
}

// recovery reports Ready, and what the node lifecycle controller has made Unknown while the kubelet was silent. The other
// conditions stay as they are set.
func recovery(node *corev1.Node, now time.Time) object {
	unknown := map[corev1.NodeConditionType]bool{}
	for _, condition := range node.Status.Conditions {
		unknown[condition.Type] = condition.Status == corev1.ConditionUnknown
	}
	var conditions []corev1.NodeCondition
	for i, condition := range healthyConditions {
		if i == 0 || unknown[condition.Type] {
			conditions = append(conditions, stamped(condition, now, now))
		}
	}
	return object{"conditions": conditions}
}

// isSilent reports whether a node's kubelet says nothing at all: it does not renew its lease either.
func isSilent(node *corev1.Node) bool { return node.Labels[notReadyLabel] == "unknown" }

func stamped(condition corev1.NodeCondition, heartbeat, transition time.Time) corev1.NodeCondition {
	condition.LastHeartbeatTime = metav1.NewTime(heartbeat)
	condition.LastTransitionTime = metav1.NewTime(transition)
	return condition
}

// firstReport keeps what the node was created with and adds what it lacks.
func firstReport(node *corev1.Node, now time.Time) object {
	transition := now
	if !node.CreationTimestamp.IsZero() {
		transition = node.CreationTimestamp.Time
	}
	var conditions []corev1.NodeCondition
	for _, condition := range healthyConditions {
		conditions = append(conditions, stamped(condition, now, transition))
	}
	status := object{
		"conditions":  conditions,
		"allocatable": resourcesOf(node.Status.Allocatable),
		"capacity":    resourcesOf(node.Status.Capacity),
		"nodeInfo":    nodeInfo(node.Status.NodeInfo, "booted-as-"+string(node.UID)),
		"phase":       corev1.NodeRunning,
	}
	if missing := missingAddresses(node); len(missing) > 0 {
		status["addresses"] = missing
	}
	return status
}

func resourcesOf(given corev1.ResourceList) corev1.ResourceList {
	if len(given) > 0 {
		return given
	}
	return corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("32"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
}

func nodeInfo(info corev1.NodeSystemInfo, bootID string) corev1.NodeSystemInfo {
	kubernetes := version.Get().GitVersion
	for _, field := range []struct {
		value *string
		other string
	}{
		{&info.Architecture, "amd64"},
		{&info.BootID, bootID},
		{&info.OperatingSystem, "linux"},
		{&info.ContainerRuntimeVersion, "devcluster"},
		{&info.KernelVersion, "devcluster"},
		{&info.KubeletVersion, kubernetes},
		{&info.KubeProxyVersion, kubernetes},
	} {
		if *field.value == "" {
			*field.value = field.other
		}
	}
	return info
}

func missingAddresses(node *corev1.Node) []corev1.NodeAddress {
	var missing []corev1.NodeAddress
	for _, address := range []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: nodeAddress(int(hashOf(node.Name)%0xfffe), 30)},
		{Type: corev1.NodeHostName, Address: node.Name},
	} {
		if len(nodeAddresses(node, address.Type)) == 0 {
			missing = append(missing, address)
		}
	}
	return missing
}

func nodeAddresses(node *corev1.Node, kind corev1.NodeAddressType) []string {
	var addresses []string
	for _, address := range node.Status.Addresses {
		if address.Type == kind {
			addresses = append(addresses, address.Address)
		}
	}
	return addresses
}

func notReadyReport(label string, now time.Time) object {
	condition := corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionFalse,
		Reason: "KubeletNotReady", Message: "the node has the label " + notReadyLabel,
	}
	if label == "unknown" {
		condition.Status, condition.Reason = corev1.ConditionUnknown, "NodeStatusUnknown"
	}
	return object{"conditions": []corev1.NodeCondition{stamped(condition, now, now)}}
}

// heartbeatDue differs from node to node, so that they do not all report at once.
func heartbeatDue(node *corev1.Node) time.Time {
	jitter := time.Duration(hashOf(node.Name)) % heartbeatJitter
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.LastHeartbeatTime.Add(heartbeatEvery + jitter)
		}
	}
	return time.Time{}
}

// heartbeat changes the heartbeat times alone.
func heartbeat(node *corev1.Node, now time.Time) object {
	reported := map[corev1.NodeConditionType]bool{}
	for _, condition := range healthyConditions {
		reported[condition.Type] = true
	}
	var conditions []object
	for _, condition := range node.Status.Conditions {
		if reported[condition.Type] {
			conditions = append(conditions, object{"type": condition.Type, "lastHeartbeatTime": metav1.NewTime(now)})
		}
	}
	return object{"conditions": conditions}
}

func hashOf(name string) uint32 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name))
	return hash.Sum32()
}
