package api_test

import (
	"strings"
	"testing"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/profile/state"
)

func TestProfileIDs(t *testing.T) {
	for _, cluster := range []string{"", "east"} {
		for _, profile := range []string{"flatcar", "Os_patching.1", "-a", "default"} {
			id := api.ProfileTransitionID(cluster, profile, "worker-1.example")
			gotCluster, name, node, err := api.ParseProfileTransitionID(id)
			if err != nil || gotCluster != cluster || name != profile || node != "worker-1.example" {
				t.Errorf("%s is read as %q, %q, %q, %v", id, gotCluster, name, node, err)
			}
			if !strings.HasPrefix(id, api.ProfileTransitionIDPrefix(cluster)) {
				t.Error(id)
			}
		}
	}
	if got := api.ProfilesID("east"); got != "east/drydock-profiles" {
		t.Error(got)
	}
	if got := api.ProfilesID(""); got != "drydock-profiles" {
		t.Error(got)
	}
	for _, id := range []string{
		"", "profile-transition/a", "profile-transition//n", "profile-transition/a--b/n", "profile-transition/a b/n", "profile-transition/a/N",
		"EAST/profile-transition/a/n", "profile-transition/a/b/c", api.ProfilesID(""), api.RemediationID("", "a", "n"), api.MaintenanceID("", "n", "a"),
	} {
		if _, _, _, err := api.ParseProfileTransitionID(id); err == nil {
			t.Errorf("%q is taken for a transition's", id)
		}
	}
}

func TestInputsOfTransitions(t *testing.T) {
	right := api.ProfileTransitionInput{Profile: "p", Node: "n", UID: "u", From: state.Operational, To: state.Required}
	if err := right.Validate(); err != nil {
		t.Error(err)
	}
	entering := api.ProfileTransitionInput{Profile: "p", Node: "n", UID: "u", From: state.Required, To: state.Required, Enter: true}
	if err := entering.Validate(); err != nil {
		t.Error(err)
	}
	for field, change := range map[string]func(*api.ProfileTransitionInput){
		"profile":  func(i *api.ProfileTransitionInput) { i.Profile = "a--b" },
		"node":     func(i *api.ProfileTransitionInput) { i.Node = "" },
		"from":     func(i *api.ProfileTransitionInput) { i.From = "somewhere" },
		"enter":    func(i *api.ProfileTransitionInput) { i.Enter = true },
		"uid":      func(i *api.ProfileTransitionInput) { i.UID = "" },
		"triggers": func(i *api.ProfileTransitionInput) { i.Triggers = make([]string, 201) },
	} {
		wrong := right
		change(&wrong)
		if err := wrong.Validate(); err == nil || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
