package terminal

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

const (
	// gap is between two columns.
	gap = 2
	// A column of texts is made narrower before one of names, each down to what can still be read.
	narrowText = 16
	narrowName = 8
)

// columns is how many columns of a terminal a text takes.
func columns(text string) int {
	n := 0
	for _, r := range text {
		n += columnsOf(r)
	}
	return n
}

func columnsOf(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

func columnWidths(rows []row) []int {
	var widths []int
	for _, one := range rows {
		for i, cell := range one.cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], columns(cell))
		}
	}
	return widths
}

// narrow takes from the widest columns what a line has no room for: from those with texts first, which can be broken between words. Broken:
// they are, and may be as narrow as their longest word before a name is broken.
func narrow(widths []int, rows []row, room int, broken bool) {
	over := gap*(len(widths)-1) - room
	for _, w := range widths {
		over += w
	}
	texts, words := make([]bool, len(widths)), make([]int, len(widths))
	for _, one := range rows {
		for i, cell := range one.cells {
			texts[i] = texts[i] || strings.Contains(strings.TrimSpace(cell), " ") && columns(cell) > narrowText
			for word := range strings.FieldsSeq(cell) {
				words[i] = max(words[i], columns(word))
			}
		}
	}
	isText := func(i int) bool { return texts[i] }
	over = take(widths, over, func(int) int { return narrowText }, isText)
	if broken {
		over = take(widths, over, func(i int) int { return max(narrowName, words[i]) }, isText)
	}
	take(widths, over, func(int) int { return narrowName }, func(int) bool { return true })
}

// take makes the widest of the chosen columns narrower, one column of the terminal after the other, and returns how many
// are still too many.
func take(widths []int, over int, least func(i int) int, chosen func(i int) bool) int {
	for ; over > 0; over-- {
		widest := -1
		for i, w := range widths {
			if w > least(i) && chosen(i) && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return over
}

// cutTo is the beginning of a text that is too long, with a sign that it goes on.
func cutTo(text string, room int) string {
	if columns(text) <= room {
		return text
	}
	n := 0
	for i, r := range text {
		if n+columnsOf(r) > room-1 {
			return strings.TrimRight(text[:i], " ") + "…"
		}
		n += columnsOf(r)
	}
	return text
}

// pieces breaks a word that is too long after a sign such as / or -, or before a capital letter, and anywhere where it has
// none.
func pieces(word string, room int) []string {
	var all []string
	for columns(word) > room {
		fits, good, n := 0, 0, 0
		previous := ' '
		for i, r := range word {
			if i > 0 && (strings.ContainsRune("/-._:,=", previous) || unicode.IsUpper(r) && unicode.IsLower(previous)) {
				good = i
			}
			if n += columnsOf(r); n > room {
				break
			}
			previous, fits = r, i+utf8.RuneLen(r)
		}
		if good == 0 || good > fits || columns(word[:good]) < room/3 {
			good = fits
		}
		if good == 0 {
			break // not even one character has room
		}
		all, word = append(all, word[:good]), word[good:]
	}
	return append(all, word)
}

// wrap breaks a text between words, and a word only where it is too long. What is indented stays so.
func wrap(text string, room int) []string {
	if columns(text) <= room {
		return []string{text}
	}
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	if len(indent) >= room {
		indent = ""
	}
	var lines []string
	line, empty := indent, true
	flush := func() { lines, line, empty = append(lines, line), indent, true }
	for word := range strings.FieldsSeq(text) {
		if !empty && columns(line)+1+columns(word) > room {
			flush()
		}
		if !empty {
			line += " "
		}
		for i, piece := range pieces(word, room-columns(indent)) {
			if i > 0 {
				flush()
			}
			line, empty = line+piece, false
		}
	}
	if !empty {
		flush()
	}
	return lines
}
