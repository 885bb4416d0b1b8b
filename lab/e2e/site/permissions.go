package site

import (
	"errors"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Rule permits verbs on a resource.
func Rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// Account makes an account with a few permissions, and returns its kubeconfig.
func (s *Site) Account(rules ...rbacv1.PolicyRule) string {
	s.Helper()
	ns := s.Namespace()
	rbac := s.Kube.RbacV1()
	accounts := s.Kube.CoreV1().ServiceAccounts(ns)
	_, err1 := accounts.Create(s.Ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}, metav1.CreateOptions{})
	_, err2 := rbac.ClusterRoles().Create(s.Ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: ns}, Rules: rules}, metav1.CreateOptions{})
	_, err3 := rbac.ClusterRoleBindings().Create(s.Ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ns},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: "worker"}},
	}, metav1.CreateOptions{})
	file := filepath.Join(s.Options.Dir, "kubeconfig")
	err4 := WriteKubeconfig(s.Ctx, s.Lane.Cluster, ns, "worker", file)
	s.NoError(errors.Join(err1, err2, err3, err4))
	return file
}
