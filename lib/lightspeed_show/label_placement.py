"""Find each label a place: beside its mark, inside the frame, clear of other labels, of markers
and bars and, where it can be, of lines.
"""

import math
from itertools import pairwise

from .chart import Area, Bars, Boxes, Line, Points, Rule, Span, Text

LABEL = 12
LINE_HEIGHT = 15
# pixels; lines are remembered by the cells that they pass, since looking one up costs the same
# however long the line
CELL = 5


# Advances of the characters from space to ~ in DejaVu Sans, the widest of the usual faces, in
# hundredths of the size.
_ADVANCES = (
    32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 64, 34, 34, 84, 84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86,
    75, 79, 60, 79, 69, 63, 61, 73, 68, 99, 69, 61, 69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63,
    62, 35, 63, 63, 28, 28, 58, 28, 97, 63, 61, 63, 63, 41, 52, 39, 63, 59, 82, 59, 59, 52, 64,
    34, 64, 84,
)  # fmt: skip


def text_width(text, size=LABEL, bold=False):
    """Pixels that a text needs at most; the exact face is the reader's."""
    hundredths = sum(_ADVANCES[ord(c) - 32] if " " <= c <= "~" else 85 for c in text)
    return hundredths / 100 * size * (1.12 if bold else 1)


class Scale:
    """Data to pixels and back, linear or logarithmic."""

    def __init__(self, domain, log, start, end):
        self.domain, self.log, self.start, self.end = domain, log, start, end

    def px(self, value):
        low, high = self.domain
        if self.log:
            if value <= 0:
                raise ValueError(
                    f"Chart: {value:g} on a logarithmic axis: expected a value above 0"
                )
            share = math.log(value / low) / math.log(high / low)
        else:
            share = (value - low) / (high - low)
        return self.start + share * (self.end - self.start)

    def value(self, px):
        low, high = self.domain
        share = (px - self.start) / (self.end - self.start)
        return low * (high / low) ** share if self.log else low + share * (high - low)

    def inside(self, px):
        return min(self.start, self.end) - 0.5 <= px <= max(self.start, self.end) + 0.5


def labelled_in_margin(line, x):
    """Whether a line's label goes right of the frame: it ends there, or nothing else fits."""
    share = (x.px(line.x[-1]) - x.start) / (x.end - x.start)
    return line.label_at == "end" and share > 0.97


class Placer:
    """Keeps boxes and cells to stay clear of (pixels), and gives labels their cheapest place."""

    def __init__(self, x, y):
        self.x, self.y = x, y
        self.boxes, self.cells, self.bars = [], set(), []
        # the boxes of labels that have their place: to cover one is worse than to leave the frame
        self.texts = []

    def avoid(self, shape):
        """Take a drawn shape as an obstacle."""
        if shape["type"] == "line":
            self.cells |= {
                (int(px // CELL), int(py // CELL))
                for px, py in self.sampled(shape["x"], shape["y"])
            }
        if shape["type"] == "dot" and not shape["soft"]:
            for px, py in zip(map(self.x.px, shape["x"]), map(self.y.px, shape["y"]), strict=True):
                r = shape["size"] + 1
                self.boxes.append((px - r, py - r, px + r, py + r))
        if shape["type"] == "rect" and not shape["shade"]:
            for x1, x2, y1, y2 in zip(
                shape["x1"], shape["x2"], shape["y1"], shape["y2"], strict=True
            ):
                left, right = sorted((self.x.px(x1), self.x.px(x2)))
                top, bottom = sorted((self.y.px(y1), self.y.px(y2)))
                if right > left and bottom > top:
                    self.bars.append((left, top, right, bottom))

    def sampled(self, xs, ys):
        """Points every few pixels along a line, those inside the frame."""
        corners = list(zip(map(self.x.px, xs), map(self.y.px, ys), strict=True))
        points = []
        for (ax, ay), (bx, by) in pairwise(corners):
            count = max(int(math.hypot(bx - ax, by - ay) / 4), 1)
            points += [
                (ax + (bx - ax) * i / count, ay + (by - ay) * i / count) for i in range(count)
            ]
        return [p for p in [*points, corners[-1]] if self.x.inside(p[0]) and self.y.inside(p[1])]

    def labels(self, marks):
        """All labels' text shapes: those with one place first, those with a choice round them."""
        plain = [m for m in marks if isinstance(m, Text)]
        texts = [self._fixed(m.x, m.y, m.text, m.color, m.anchor, 0, 0, False) for m in plain]
        lines = [m for m in marks if isinstance(m, Line) and m.label]
        texts += self._margin_labels(lines)
        for mark in sorted(marks, key=lambda m: not isinstance(m, Bars)):
            if isinstance(mark, Bars) and mark.labels:
                texts += self._bar_labels(mark)
        for mark in marks:
            if isinstance(mark, Boxes) and mark.labels:
                texts += self._box_labels(mark)
        for line in lines:
            if line.label_at == "along":
                texts += self._along(line)
        points = [m for m in marks if isinstance(m, Points) and m.labels]
        for mark in sorted(points, key=lambda m: not m.drop):
            for x, y, text in zip(mark.x, mark.y, mark.labels, strict=True):
                if text and self.x.inside(self.x.px(x)) and self.y.inside(self.y.px(y)):
                    places = self._beside(mark.size + 4)
                    texts.append(self._best(x, y, text, mark.color, places, bold=mark.drop))
        for mark in marks:
            if isinstance(mark, Line) and mark.label and mark.label_at != "along":
                if self._in_margin(mark):
                    continue
                run = self.sampled(mark.x, mark.y)
                if run:
                    end, at_end = self._data(*run[-1]), mark.label_at == "end"
                    beside = [(0, (*end, *place)) for place in _around(6)] if at_end else []
                    over = self._over(run, text_width(mark.label))
                    extra, options = zip(*beside, *over, strict=True)
                    texts.append(self._cheapest(options, mark.label, mark.color, extra=extra))
            elif isinstance(mark, Rule | Span | Area) and mark.label:
                texts.append(self._edge_label(mark))
        return texts

    def _in_margin(self, line):
        return labelled_in_margin(line, self.x)

    def _margin_labels(self, lines):
        """Labels right of the frame, pushed apart from the top down and back up."""
        rows = []
        for line in lines:
            points = self.sampled(line.x, line.y) if self._in_margin(line) else ()
            if points:
                rows.append([points[-1][1], points[-1][1], line])
        rows.sort(key=lambda row: row[0])
        for above, below in pairwise(rows):
            below[0] = max(below[0], above[0] + LINE_HEIGHT)
        limit = self.y.start - 7  # the tick labels of the other axis begin below
        for row in reversed(rows):
            row[0] = min(row[0], limit)
            limit = row[0] - LINE_HEIGHT
        # a large marker at the edge reaches into the margin
        gap = 11 if any(box[2] > self.x.end + 7 for box in [*self.boxes, *self.texts]) else 7
        return [
            self._fixed(
                self.x.domain[1],
                self.y.value(at),
                line.label,
                line.color,
                "start",
                gap,
                label_y - at,
                False,
            )
            for label_y, at, line in rows
        ]

    def _bar_labels(self, bars):
        texts = []
        flat = self.y.domain[0] > self.y.domain[1]
        for i, text in enumerate(bars.labels):
            end = (bars.to[i], bars.at[i]) if flat else (bars.at[i], bars.to[i])
            if bars.start is None:
                texts.append(
                    self._fixed(
                        *end,
                        text,
                        "black",
                        "start" if flat else "middle",
                        6 if flat else 0,
                        0 if flat else -9,
                        False,
                    )
                )
                continue
            scale = self.x if flat else self.y
            length = abs(scale.px(bars.to[i]) - scale.px(bars.start[i]))
            # the width is that of the widest face: there is air left
            if length >= (text_width(text) + 1 if flat else LINE_HEIGHT):
                middle = scale.value((scale.px(bars.to[i]) + scale.px(bars.start[i])) / 2)
                at = (middle, bars.at[i]) if flat else (bars.at[i], middle)
                texts.append(self._fixed(*at, text, "inside", "middle", 0, 0, False))
        return texts

    def _box_labels(self, boxes):
        """Labels in the middle of solid boxes, at the top of soft ones; none where it is tight."""
        texts = []
        sides = zip(boxes.x1, boxes.x2, boxes.y1, boxes.y2, strict=True)
        keys = boxes.keys or ("",) * len(boxes.labels)
        for (x1, x2, y1, y2), text, key in zip(sides, boxes.labels, keys, strict=True):
            wide = abs(self.x.px(x2) - self.x.px(x1))
            high = abs(self.y.px(y2) - self.y.px(y1))
            if not text or wide < text_width(text) + 1 or high < LINE_HEIGHT:
                continue
            middle, top = (x1 + x2) / 2, max(y1, y2)
            if boxes.soft:
                shape = self._fixed(middle, top, text, boxes.color, "middle", 0, 11, False)
            else:
                y = (y1 + y2) / 2
                shape = self._fixed(middle, y, text, "inside", "middle", 0, 0, False)
            texts.append(shape | ({"keys": [key]} if key else {}))
        return texts

    def _along(self, line):
        """A label parallel to the first straight run of a line, above it where the view is free."""
        points = self.sampled(line.x, line.y)
        if len(points) < 2:
            return []
        (ax, ay), run = points[0], points[1]
        angle = math.atan2(run[1] - ay, run[0] - ax)
        for point in points[1:]:
            if abs(math.atan2(point[1] - ay, point[0] - ax) - angle) > 0.02:
                break
            run = point
        width, options = text_width(line.label), []
        for rank, share in enumerate((0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8)):
            for side in (-9, 9, -19, 19):  # the far ones pass a marker on the line
                mx = ax + share * (run[0] - ax) - side * math.sin(angle)
                my = ay + share * (run[1] - ay) + side * math.cos(angle)
                steps = [width * (i / 8 - 0.5) for i in range(9)]
                middles = [(mx + s * math.cos(angle), my + s * math.sin(angle)) for s in steps]
                boxes = [(x - 5, y - 5, x + 5, y + 5) for x, y in middles]
                cost = sum(self._cost(box) for box in boxes) + rank
                options.append((cost + (side > 0) + 6 * (abs(side) > 9), share, side, boxes))
        _, share, side, boxes = min(options, key=lambda option: option[0])
        self.texts += boxes
        at, ends = (ax + share * (run[0] - ax), ay + share * (run[1] - ay)), ((ax, ay), run)
        x, y = self._data(*at)
        shape = _text(x, y, line.label, line.color, "middle", 0, side, False)
        return [shape | {"along": [_g(v) for end in ends for v in self._data(*end)]}]

    def _over(self, points, width):
        """Places above and below a line at its right end, then further left, then at a distance;
        each as high as the line is below the label.
        """
        at = sorted(px for px, _ in points)
        left, end = at[0], at[-1]
        back = [end - d for d in range(60, 361, 60) if end - d - width >= left]
        # the last two for lines shorter than their labels
        rights = [end - 4, *back, (left + end + width) / 2, left + width]
        options = []
        for up, down in ((-10, 11), (-14, 15), (-20, 21), (-26, 27)):
            for right in rights:
                right = min(max(right, self.x.start + width + 3), self.x.end - 3)
                beside = [py for px, py in points if right - width - 6 <= px <= right + 6]
                # at other widths: with the end, or with its place on the line
                anchor, dx = (end, right - end) if right >= end - 4 else (right, 0)
                if beside:
                    # a label on a steep stretch is far from one of its ends
                    steep = 0.3 * (max(beside) - min(beside))
                    options += [
                        (steep, (*self._data(anchor, py), "end", dx, dy))
                        for py, dy in ((min(beside), up), (max(beside), down))
                    ]
        return options

    def _beside(self, r):
        """Places round a marker; among bars those level with it first, as it ends a bar."""
        return sorted(_around(r), key=lambda place: place[2] != 0) if self.bars else _around(r)

    def _edge_label(self, mark):
        """A label for a rule, a span or an area: at the top of what stands upright, at an end of
        what lies, in the middle of a band.
        """
        if isinstance(mark, Area):
            i = len(mark.x) // 2
            low, high = mark.low[i], mark.high[i]
            y = math.sqrt(low * high) if self.y.log else (low + high) / 2
            places = [("middle", 0, dy) for dy in (0, -16, 16, -32, 32)]
            return self._best(mark.x[i], y, mark.label, mark.color, places)
        if mark.x is None:
            middle = self._middle(mark.y, self.y)
            beside = (0, -9, 9) if isinstance(mark, Span) else (-9, 9)
            options = [
                (x, middle, anchor, dx, dy)
                for x, anchor, dx in ((self.x.domain[1], "end", -6), (self.x.domain[0], "start", 6))
                for dy in beside
            ]
            return self._cheapest(options, mark.label, mark.color)
        wide = isinstance(mark, Span) and self._length(mark.x, self.x) > text_width(mark.label)
        sides = [("middle", 0)] if wide else [("start", 6), ("end", -6)]
        at = self._middle(mark.x, self.x), self.y.domain[1]
        places = [(anchor, dx, 10 + 16 * k) for k in range(8) for anchor, dx in sides]
        return self._best(*at, mark.label, mark.color, places)

    def _ends(self, side, scale):
        ends = side if isinstance(side, tuple) else (side, side)
        return [scale.px(scale.domain[i] if end is None else end) for i, end in enumerate(ends)]

    def _middle(self, side, scale):
        return scale.value(sum(self._ends(side, scale)) / 2)

    def _length(self, side, scale):
        low, high = self._ends(side, scale)
        return abs(high - low)

    def _best(self, x, y, text, color, places, bold=False):
        """The text shape at its cheapest place: (anchor, dx, dy) in pixels from a point."""
        return self._cheapest([(x, y, *place) for place in places], text, color, bold)

    def _cheapest(self, options, text, color, bold=False, extra=None):
        costs = [
            self._cost(_box(self.x.px(x), self.y.px(y), text, anchor, dx, dy, bold)) + 0.2 * rank
            for rank, (x, y, anchor, dx, dy) in enumerate(options)
        ]
        costs = [cost + more for cost, more in zip(costs, extra or [0] * len(costs), strict=True)]
        x, y, anchor, dx, dy = options[costs.index(min(costs))]
        return self._fixed(x, y, text, color, anchor, dx, dy, bold)

    def _fixed(self, x, y, text, color, anchor, dx, dy, bold):
        self.texts.append(_box(self.x.px(x), self.y.px(y), text, anchor, dx, dy, bold))
        return _text(x, y, text, color, anchor, dx, dy, bold)

    def _cost(self, box):
        left, top, right, bottom = box
        cost = 200 * (
            left < self.x.start
            or right > self.x.end
            or top < min(self.y.start, self.y.end)
            or bottom > max(self.y.start, self.y.end)
        )
        for price, boxes in ((300, self.texts), (100, self.boxes), (60, self.bars)):
            cost += price * sum(
                left < b[2] and b[0] < right and top < b[3] and b[1] < bottom for b in boxes
            )
        columns = range(int(left // CELL), int(right // CELL) + 1)
        rows = range(int(top // CELL), int(bottom // CELL) + 1)
        return cost + 2 * sum((column, row) in self.cells for column in columns for row in rows)

    def _data(self, px, py):
        return self.x.value(px), self.y.value(py)


def _around(r):
    return [
        ("start", r, -r),
        ("start", r, 0),
        ("end", -r, -r),
        ("start", r, r),
        ("end", -r, 0),
        ("end", -r, r),
        ("middle", 0, -r - 6),
        ("middle", 0, r + 7),
        ("start", r, 2 * r),
        ("end", -r, -2 * r - 4),
        ("middle", 0, -r - 22),
        ("middle", 0, r + 22),
        ("end", -r, 2 * r),
    ]


def _box(px, py, text, anchor, dx, dy, bold):
    width = text_width(text, bold=bold)
    left = px + dx - {"start": 0, "middle": width / 2, "end": width}[anchor]
    return left - 2, py + dy - LINE_HEIGHT / 2, left + width + 2, py + dy + LINE_HEIGHT / 2


def _text(x, y, text, color, anchor, dx, dy, bold):
    return {
        "type": "text",
        "x": _g(x),
        "y": _g(y),
        "text": text,
        "color": color,
        "anchor": anchor,
        "dx": round(dx, 1),
        "dy": round(dy, 1),
        "bold": bold,
    }


def _g(value):
    return float(f"{value:.7g}")
