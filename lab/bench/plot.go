package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-analyze/charts"

	"drydock.dev/drydock/lab/world"
)

// plot is a picture of what a benchmark measured: a value by label for each series. Few labels are drawn as bars, many as lines.
type plot struct {
	title, unit string
	labels      []string
	series      []series
}

// add adds a value, and the series and the label where they are new.
func (p *plot) add(to, label string, value float64) {
	if !slices.Contains(p.labels, label) {
		p.labels = append(p.labels, label)
	}
	at := slices.IndexFunc(p.series, func(s series) bool { return s.name == to })
	if at < 0 {
		at, p.series = len(p.series), append(p.series, series{name: to})
	}
	p.series[at].values = append(p.series[at].values, value)
}

type series struct {
	name   string
	values []float64
}

// asLines is from how many labels on a plot has lines.
const asLines = 12

// draw writes the plot as bench-NAME.svg, into the folder that DRYDOCK_PICTURES names, or else into the root of the source tree.
func (p plot) draw(name string) error {
	painter := charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputSVG, Width: 760, Height: 320})
	title := charts.TitleOption{Text: p.title + ", " + p.unit, FontStyle: charts.FontStyle{FontSize: 12}}
	text := charts.FontStyle{FontSize: 10}
	var names []string
	var values [][]float64
	for _, s := range p.series {
		names, values = append(names, s.name), append(values, slices.Clone(s.values))
	}
	legend := charts.LegendOption{SeriesNames: names, FontStyle: text, Offset: charts.OffsetStr{Left: charts.PositionRight}, Show: charts.Ptr(len(names) > 1)}
	format := func(v float64) string { return fmt.Sprintf("%.4g", v) }
	var err error
	if len(p.labels) < asLines {
		for _, v := range values {
			slices.Reverse(v) // the first bar is the lowest
		}
		o := charts.NewBarChartOptionWithData(values)
		o.Title, o.Legend, o.ValueFormatter = title, legend, format
		o.Horizontal = true
		o.CategoryAxis.Labels, o.CategoryAxis.LabelFontStyle, o.ValueAxis[0].LabelFontStyle = reversed(p.labels), text, text
		o.ValueAxis[0].Min = charts.Ptr(0.0)
		for i := range o.SeriesList {
			o.SeriesList[i].Label = charts.SeriesLabel{Show: charts.Ptr(true), FontStyle: text}
		}
		err = painter.BarChart(o)
	} else {
		o := charts.NewLineChartOptionWithData(values)
		o.Title, o.Legend, o.ValueFormatter = title, legend, format
		o.XAxis.Labels, o.XAxis.LabelFontStyle, o.YAxis[0].LabelFontStyle, o.YAxis[0].Min = p.labels, text, text, charts.Ptr(0.0)
		o.XAxis.LabelCount, o.Symbol.Shape = 11, charts.SymbolNone // 0, 10 and so on up to 100 %
		err = painter.LineChart(o)
	}
	if err != nil {
		return fmt.Errorf("plot %s: %w", name, err)
	}
	picture, err := painter.Bytes()
	if err != nil {
		return fmt.Errorf("plot %s: %w", name, err)
	}
	file, err := pictureFile("bench-" + name + ".svg")
	if err != nil {
		return err
	}
	return os.WriteFile(file, picture, 0o644)
}

func reversed(labels []string) []string {
	labels = slices.Clone(labels)
	slices.Reverse(labels)
	return labels
}

// distribution is a plot of how long the shortest parts of some times, in percent of them, took at most.
func distribution(title string, times []time.Duration) plot {
	sorted := slices.Sorted(slices.Values(times))
	p := plot{title: title, unit: "ms, by percent", series: []series{{values: make([]float64, 0, 101)}}}
	for percent := range 101 {
		p.labels = append(p.labels, fmt.Sprintf("%d %%", percent))
		p.series[0].values = append(p.series[0].values, ms(sorted[percent*(len(sorted)-1)/100]))
	}
	return p
}

// pictureFile is where a picture is kept.
func pictureFile(name string) (string, error) {
	return world.Output(filepath.Join(cmp.Or(os.Getenv("DRYDOCK_PICTURES"), "."), name))
}
