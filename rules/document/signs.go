package document

import (
	"slices"
	"strings"
)

// sparks are the signs of a line of numbers, from the least to the most.
var sparks = []rune("▁▂▃▄▅▆▇█")

// Sparks are numbers as a line of signs, each as high as its number.
func Sparks(numbers []int) string {
	if len(numbers) == 0 {
		return ""
	}
	var line strings.Builder
	most := max(slices.Max(numbers), 1)
	for _, n := range numbers {
		line.WriteRune(sparks[max(n, 0)*(len(sparks)-1)/most])
	}
	return line.String()
}

// barWidth is how many signs a bar has.
const barWidth = 20

// Bar is a part of a whole as a bar. A part that is not nothing has a sign.
func Bar(part, whole int) string {
	if whole <= 0 {
		return ""
	}
	n := min(max(barWidth*part/whole, min(part, 1)), barWidth)
	return strings.Repeat("█", n) + strings.Repeat("░", barWidth-n)
}
