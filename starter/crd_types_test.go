package starter

import (
	generator "github.com/invopop/jsonschema"
)

// words is a schema of a text, or of a list of texts.
func words(description string, values ...any) map[string]any {
	made := map[string]any{"type": "string", "description": description}
	if len(values) > 0 {
		made["enum"] = values
	}
	return made
}

// requirements is the schema of a list of requirements of a selector.
func requirements(description, of string, operators ...any) map[string]any {
	return map[string]any{
		"type": "array", "description": description, "items": map[string]any{
			"type": "object", "required": []string{"key", "operator"}, "properties": map[string]any{
				"key":      words("key is the key of a " + of + "."),
				"operator": words("operator is how the key relates to the values.", operators...),
				"values": map[string]any{
					"type": "array", "items": map[string]any{"type": "string"}, "description": "values are those that the operator is about; Exists and DoesNotExist have none.",
				},
			},
		},
	}
}

// selectors are the schemas of fields whose types are Kubernetes' own.
var selectors = map[string]map[string]any{
	"health:selector": {
		"type": "object", "properties": map[string]any{
			"matchLabels": map[string]any{
				"type": "object", "additionalProperties": map[string]any{"type": "string"}, "description": "matchLabels are labels that a node has.",
			},
			"matchExpressions": requirements("matchExpressions are requirements that the labels of a node meet.", "label", "In", "NotIn", "Exists", "DoesNotExist"),
		},
	},
	"plan:nodeSelector": {
		"type": "object", "required": []string{"nodeSelectorTerms"}, "properties": map[string]any{
			"nodeSelectorTerms": map[string]any{
				"type": "array", "minItems": 1, "description": "nodeSelectorTerms are terms of which a node meets any.",
				"items": map[string]any{"type": "object", "properties": map[string]any{
					"matchExpressions": requirements("matchExpressions are requirements that the labels of a node meet.", "label", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"),
					"matchFields":      requirements("matchFields are requirements that the fields of a node meet.", "field", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"),
				}},
			},
		},
	},
}

// Patterns of amounts that are text: a number, or a percentage of at most 100%; without zero, and with "unlimited".
const (
	amounts   = `[0-9]{1,18}|0*([0-9]{1,2}|100)%`
	notZero   = `0*[1-9][0-9]{0,17}|0*([1-9][0-9]?|100)%`
	unlimited = `|unlimited`
)

// amount is the schema of a number of nodes.
func (m schemaMaker) amount(path string) map[string]any {
	made := map[string]any{
		"x-kubernetes-int-or-string": true, "anyOf": []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}, "minimum": 0,
	}
	pattern := amounts
	switch m.input + ":" + path {
	case "plan:strategy.maxParallel":
		made["minimum"], pattern = 1, notZero+unlimited
	case "plan:strategy.maxFailures":
		pattern += unlimited
	}
	made["pattern"] = "^(" + pattern + ")$"
	return made
}

// conditionSchema is the schema of a metav1.Condition.
func conditionSchema() *generator.Schema {
	properties := generator.NewProperties()
	put := func(name string, s generator.Schema) { properties.Set(name, &s) }
	put("type", generator.Schema{
		Type: "string", Description: "type is the type of the condition.", MaxLength: new(uint64(316)),
		Pattern: `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`,
	})
	put("status", generator.Schema{Type: "string", Description: "status is whether it holds.", Enum: []any{"True", "False", "Unknown"}})
	put("observedGeneration", generator.Schema{Type: "integer", Description: "observedGeneration is the generation of the spec that it is about.", Minimum: "0"})
	put("lastTransitionTime", generator.Schema{Type: "string", Format: "date-time", Description: "lastTransitionTime is when the status last changed."})
	put("reason", generator.Schema{
		Type: "string", Description: "reason is why, in one word.", MinLength: new(uint64(1)), MaxLength: new(uint64(1024)),
		Pattern: `^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`,
	})
	put("message", generator.Schema{Type: "string", Description: "message says it in words.", MaxLength: new(uint64(32768))})
	return &generator.Schema{
		Type: "object", Properties: properties, AdditionalProperties: generator.FalseSchema,
		Required: []string{"type", "status", "lastTransitionTime", "reason", "message"},
	}
}
