package schemas

import (
	"path"
	"strings"
)

// sections are the pages of docs/reference with the sections that comments link to, as [windows](#windows): a comment names a section of
// the reference, wherever that is.
var sections = map[string]string{
	"a-maintenance-reports-to-a-workflow": "maintenance",
	"a-maintenance-that-plans-share":      "plans",
	"a-maintenances-input":                "maintenance",
	"a-node-that-is-off":                  "drain",
	"audit":                               "configuration",
	"authorities":                         "configuration",
	"channels":                            "channels",
	"checks":                              "hooks-and-checks",
	"evictionrequest":                     "drain",
	"health-checks":                       "health",
	"health-checks-of-the-configuration":  "health",
	"hooks":                               "hooks-and-checks",
	"hooks-and-closings":                  "hooks-and-checks",
	"lifecycle-states":                    "channels",
	"marks-of-other-remediators":          "scheduler",
	"node-conditions":                     "maintenance",
	"policy-and-quotas":                   "configuration",
	"preflight":                           "drain",
	"profiles":                            "profiles",
	"remediations":                        "scheduler",
	"rolling-out-a-new-worker":            "configuration",
	"secrets":                             "configuration",
	"stages":                              "plans",
	"the-drain":                           "drain",
	"the-escalation":                      "drain",
	"the-scheduler":                       "scheduler",
	"urls-of-nodes":                       "hooks-and-checks",
	"validation":                          "hooks-and-checks",
	"who-it-was":                          "maintenance",
	"windows":                             "configuration",
	"work":                                "hooks-and-checks",
	"work-on-a-node":                      "hooks-and-checks",
}

// Linked is the Markdown of a comment as a page of docs/reference has it.
func Linked(markdown, page string) string {
	return link.ReplaceAllStringFunc(markdown, func(found string) string {
		parts := link.FindStringSubmatch(found)
		section, ok := strings.CutPrefix(parts[2], "#")
		if there := sections[section]; ok && there != "" && there != page {
			return "[" + parts[1] + "](" + there + ".md#" + section + ")"
		}
		return found
	})
}

// pageOf is where a link of a comment leads, from the root of the repository.
func pageOf(target string) string {
	if section, ok := strings.CutPrefix(target, "#"); ok {
		return "docs/reference/" + sections[section] + ".md#" + section
	}
	return path.Join("docs/reference", target)
}
