package web_test

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"drydock.dev/drydock/rules/web"
)

var color = regexp.MustCompile(`--([a-z]+): #([0-9a-f]{6})`)

// luminance is the relative luminance of a colour, as WCAG 2 defines it.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	value, err := strconv.ParseUint(hex, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	part := func(shift int) float64 {
		c := float64(value>>shift&255) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*part(16) + 0.7152*part(8) + 0.0722*part(0)
}

// Text has a contrast of 4.5 at least with each ground that it stands on, light and dark (WCAG 2, 1.4.3).
func TestContrastsSuffice(t *testing.T) {
	light, dark, found := strings.Cut(web.Style(), "@media (prefers-color-scheme: dark)")
	if !found {
		t.Fatal("there are no dark colours")
	}
	dark, _, _ = strings.Cut(dark, "* {")
	for name, scheme := range map[string]string{"light": light, "dark": dark} {
		colors := map[string]float64{}
		for _, c := range color.FindAllStringSubmatch(scheme, -1) {
			colors[c[1]] = luminance(t, c[2])
		}
		for _, text := range []string{"fore", "soft", "link", "good", "bad", "active", "faint", "failed", "down", "moving", "ready", "cordoned", "service"} {
			for _, ground := range []string{"back", "raised"} {
				a, b := colors[text], colors[ground]
				if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); colors[text] == 0 || ratio < 4.5 {
					t.Errorf("%s: %s on %s has a contrast of %.2f", name, text, ground, ratio)
				}
			}
		}
	}
}
