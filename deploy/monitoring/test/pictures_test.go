package monitoring_test

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-analyze/charts"
)

// The size of a picture, in pixels: a column and a row of Grafana's grid, and what is between panels.
const (
	columnWidth = 50
	rowHeight   = 32
	gap         = 8
	gridColumns = 24
)

// mayBeEmpty are the panels that show nothing while everything goes as it should, or of which nothing happens here.
var mayBeEmpty = []string{"engine.json: Tasks that failed", "drains.json: Waiting for pods to complete"}

// canvas is a picture of a dashboard.
type canvas struct {
	*charts.Painter
	from, to time.Time
}

var (
	theme   = charts.GetTheme(charts.ThemeLight)
	ink     = charts.ColorFromHex("#1f2328")
	faint   = charts.ColorFromHex("#59636e")
	frame   = charts.ColorFromHex("#d1d9e0")
	bar     = charts.ColorFromHex("#1a7f5a")
	heading = charts.FontStyle{FontSize: 15, FontColor: ink}
	title   = charts.FontStyle{FontSize: 10, FontColor: ink}
	small   = charts.FontStyle{FontSize: 10, FontColor: faint}
	large   = charts.FontStyle{FontSize: 24, FontColor: ink}
)

// draw draws a dashboard by what Prometheus answers, as Grafana would lay it out. Every panel has to have something to show. DRYDOCK_PICTURES
// names a folder that keeps the picture.
func (s server) draw(t *testing.T, file string, d dashboard, from time.Time) {
	t.Helper()
	height := 0
	for _, p := range d.Panels {
		height = max(height, p.GridPos.Y+p.GridPos.H)
	}
	c := canvas{charts.NewPainter(charts.PainterOptions{
		OutputFormat: charts.ChartOutputPNG, Width: gridColumns*columnWidth + gap, Height: height*rowHeight + gap, Theme: theme,
	}), from, time.Now()}
	c.FilledRect(0, 0, c.Width(), c.Height(), charts.ColorWhite, charts.ColorWhite, 0)
	for _, p := range d.Panels {
		series, err := s.seriesOf(t, p, c.from, c.to)
		if err != nil {
			t.Errorf("%s: %s: %v", file, p.Title, err)
			continue
		}
		if p.Type != "row" && !slices.ContainsFunc(series, shown.hasValue) && !slices.Contains(mayBeEmpty, file+": "+p.Title) {
			t.Errorf("%s: %s shows nothing", file, p.Title)
		}
		if err := c.panel(p, series); err != nil {
			t.Errorf("%s: %s: %v", file, p.Title, err)
		}
	}
	picture, err := c.Bytes()
	if err != nil || len(picture) == 0 {
		t.Fatalf("%s: %d bytes, %v", file, len(picture), err)
	}
	if dir := os.Getenv("DRYDOCK_PICTURES"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "dashboard-"+strings.TrimSuffix(file, ".json")+".png"), picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// shown is a series as a panel names it.
type shown struct {
	name string
	found
}

// hasValue reports whether it has a number, now or at a time.
func (s shown) hasValue() bool {
	return slices.ContainsFunc(append(s.Values, s.Value), func(v sample) bool { return v.at > 0 && !math.IsNaN(v.value) })
}

var labelOf = regexp.MustCompile(`\{\{(\w+)\}\}`)

// seriesOf asks for what a panel shows, in the order of its names.
func (s server) seriesOf(t *testing.T, p panel, from, to time.Time) (all []shown, err error) {
	t.Helper()
	for _, target := range p.Targets {
		var answer result
		if target.Instant {
			answer, err = s.now(t.Context(), filled(target.Expr))
		} else {
			answer, err = s.between(t.Context(), filled(target.Expr), from, to)
		}
		if err != nil {
			return nil, err
		}
		for _, f := range answer.Result {
			name := labelOf.ReplaceAllStringFunc(target.LegendFormat, func(label string) string { return f.Metric[strings.Trim(label, "{}")] })
			all = append(all, shown{name, f})
		}
	}
	slices.SortStableFunc(all, func(a, b shown) int {
		x, errX := strconv.ParseFloat(a.name, 64)
		y, errY := strconv.ParseFloat(b.name, 64)
		if errX == nil && errY == nil { // the bounds of a histogram's buckets
			return cmp.Compare(x, y)
		}
		return cmp.Compare(a.name, b.name)
	})
	return all, nil
}

// panel draws a panel into its place.
func (c canvas) panel(p panel, series []shown) error {
	left, top := p.GridPos.X*columnWidth+gap, p.GridPos.Y*rowHeight+gap
	width, height := p.GridPos.W*columnWidth-gap, p.GridPos.H*rowHeight-gap
	if p.Type == "row" {
		c.Text(p.Title, left, top+20, 0, heading)
		return nil
	}
	c.FilledRect(left, top, left+width, top+height, charts.ColorWhite, frame, 1)
	c.Text(p.Title, left+gap, top+18, 0, title)
	inner := canvas{c.Child(charts.PainterBoxOption(charts.NewBox(left+gap, top+26, left+width-gap, top+height-gap))), c.from, c.to}
	unit := p.FieldConfig.Defaults.Unit
	if len(series) == 0 {
		inner.Text("nothing", 0, inner.Height()/2, 0, small)
		return nil
	}
	switch p.Type {
	case "stat":
		var texts []string
		for _, s := range series {
			texts = append(texts, valueIn(unit, s.Value.value))
		}
		inner.Text(strings.Join(texts, " "), 0, inner.Height()-gap, 0, large)
	case "bargauge":
		inner.bars(unit, series)
	case "timeseries":
		return inner.lines(unit, series)
	case "heatmap":
		inner.cells(apart(series))
	case "state-timeline":
		inner.cells(series)
	default:
		return fmt.Errorf("nobody has said how to draw a %s", p.Type)
	}
	return nil
}

// apart takes from each bucket of a histogram what the one before has counted.
func apart(series []shown) []shown {
	counted := map[float64]float64{}
	for _, s := range series {
		for i, v := range s.Values {
			s.Values[i].value -= counted[v.at]
			counted[v.at] = v.value
		}
	}
	return series
}

// most is the largest number among samples, and 0 at least.
func most(samples ...sample) (m float64) {
	for _, s := range samples {
		if !math.IsNaN(s.value) && !math.IsInf(s.value, 0) {
			m = max(m, s.value)
		}
	}
	return m
}

// bars draws a bar for the value of each series.
func (c canvas) bars(unit string, series []shown) {
	longest := 0.0
	for _, s := range series {
		longest = max(longest, most(s.Value))
	}
	height := min(c.Height()/len(series), 28)
	const names, values = 150, 60
	for i, s := range series {
		y := i * height
		c.Text(s.name, 0, y+height/2+4, 0, small)
		length := 1
		if longest > 0 && !math.IsNaN(s.Value.value) {
			length += int(float64(c.Width()-names-values) * s.Value.value / longest)
		}
		c.FilledRect(names, y+3, names+length, y+height-3, bar, bar, 0)
		c.Text(valueIn(unit, s.Value.value), names+length+gap, y+height/2+4, 0, small)
	}
}

// manyLines is how many lines a panel names. Of more, those that are never above zero are left out.
const manyLines = 4

// lines draws the values of each series over time.
func (c canvas) lines(unit string, series []shown) error {
	isZero := func(s shown) bool { return most(s.Values...) == 0 }
	if some := slices.DeleteFunc(slices.Clone(series), isZero); len(series) > manyLines && len(some) > 0 {
		series = some
	}
	seconds := int(c.to.Sub(c.from).Seconds()) + 1
	data, names := make([][]float64, len(series)), make([]string, len(series))
	for i, s := range series {
		names[i], data[i] = s.name, slices.Repeat([]float64{charts.GetNullValue()}, seconds)
		for _, v := range s.Values {
			if at := int(v.at - float64(c.from.Unix())); at >= 0 && at < seconds && !math.IsNaN(v.value) && !math.IsInf(v.value, 0) {
				data[i][at] = v.value
			}
		}
	}
	labels := make([]string, seconds)
	for i := range labels {
		labels[i] = c.from.Add(time.Duration(i) * time.Second).UTC().Format("15:04:05")
	}
	o := charts.NewLineChartOptionWithData(data)
	o.Theme, o.Padding = theme, charts.NewBoxEqual(2)
	o.Symbol.Shape = charts.SymbolNone
	o.LineStrokeWidth = 1.5
	o.XAxis.Labels, o.XAxis.LabelCount, o.XAxis.LabelFontStyle = labels, 4, small
	o.XAxis.BoundaryGap = charts.Ptr(false)
	o.YAxis[0].LabelFontStyle = small
	o.YAxis[0].Min = charts.Ptr(0.0)
	o.YAxis[0].ValueFormatter = func(v float64) string { return valueIn(unit, v) }
	o.Legend.SeriesNames, o.Legend.FontStyle = names, small
	o.Legend.Offset = charts.OffsetStr{Left: charts.PositionLeft, Top: charts.PositionBottom}
	return c.LineChart(o)
}

// cells draws a row of each series, the darker the more it has at a time.
func (c canvas) cells(series []shown) {
	darkest := 0.0
	for _, s := range series {
		darkest = max(darkest, most(s.Values...))
	}
	const names = 110
	seconds := c.to.Sub(c.from).Seconds()
	x := func(at float64) int { return names + int((at-float64(c.from.Unix()))/seconds*float64(c.Width()-names)) }
	height := c.Height() / len(series)
	for i, s := range series {
		y := c.Height() - (i+1)*height // the least at the bottom
		c.Text(s.name, 0, y+height/2+4, 0, small)
		for _, v := range s.Values {
			if v.value > 0 {
				shade := bar.WithAlpha(uint8(40 + 215*v.value/darkest)) //nolint:gosec // at most 255
				c.FilledRect(x(v.at), y+1, max(x(v.at+1), x(v.at)+1), y+height-1, shade, shade, 0)
			}
		}
	}
}

// valueIn is a value with its unit.
func valueIn(unit string, v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case unit == "s" && math.Abs(v) >= 120:
		return fmt.Sprintf("%.3g min", v/60)
	case unit == "s" && math.Abs(v) < 1 && v != 0:
		return fmt.Sprintf("%.3g ms", 1000*v)
	case unit == "s":
		return fmt.Sprintf("%.3g s", v)
	case unit == "bytes":
		return fmt.Sprintf("%.3g MB", v/1e6)
	case unit == "percentunit":
		return fmt.Sprintf("%.3g %%", 100*v)
	case unit == "reqps" || unit == "ops":
		return fmt.Sprintf("%.3g/s", v)
	default:
		return fmt.Sprintf("%.4g", v)
	}
}
