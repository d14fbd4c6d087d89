/**
 * Contrast: which texts of an open page have too little contrast to what is behind them, computed in the browser over all of its text:
 * 4.5 to 1, as WCAG 2 demands of level AA. Controls that are disabled have no such demand.
 */
export interface LowContrast {
  readonly text: string;
  readonly contrast: number;
  readonly colours: string;
}

/** To be evaluated in the page: a list of LowContrast, and how many texts there were. */
export const LOW_CONTRASTS = `(() => {
  const CONTRAST_MIN = 4.5;
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  /** Any notation of a colour, as red, green and blue from 0 to 255, and alpha from 0 to 1. */
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = ([r, g, b, a], [r2, g2, b2]) => [r * a + r2 * (1 - a), g * a + g2 * (1 - a), b * a + b2 * (1 - a), 1];
  const luminance = ([r, g, b]) => {
    const [lr, lg, lb] = [r, g, b].map((each) => {
      const share = each / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * lr + 0.7152 * lg + 0.0722 * lb;
  };
  const contrastOf = (a, b) => {
    const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (light + 0.05) / (dark + 0.05);
  };
  const ancestors = (element) => (element === null ? [] : [element, ...ancestors(element.parentElement)]);
  /** What an element paints behind its text: each colour of a gradient is one of several. */
  const paintsOf = (element) => {
    const style = getComputedStyle(element);
    const stops = style.backgroundImage.match(/(?:rgba?|color|oklab|hsla?)\\([^)]*\\)/g) ?? [];
    const shape = element.matches("g.chip") ? element.querySelector("rect") : null;
    const colours = shape === null ? [style.backgroundColor] : [getComputedStyle(shape).fill];
    return [...colours, ...stops].map(rgba).filter(([, , , alpha]) => alpha > 0);
  };
  /** All that may be behind the text of an element, from the root of the page to it. */
  const backsOf = (element) =>
    ancestors(element)
      .reverse()
      .reduce((backs, each) => {
        const paints = paintsOf(each);
        if (paints.length === 0) return backs;
        const solid = rgba(getComputedStyle(each).backgroundColor)[3] === 1;
        const painted = backs.flatMap((back) => paints.map((paint) => over(paint, back)));
        return solid ? painted : [...painted, ...backs];
      }, [[255, 255, 255, 1]]);
  const isSeen = (element) => {
    if (ancestors(element).some((each) => each.matches(".hidden, :disabled, datalist, option, title, script, style"))) return false;
    const { width, height } = element.getBoundingClientRect();
    return width > 0 && height > 0 && getComputedStyle(element).visibility === "visible";
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const low = [];
  let texts = 0;
  while (walker.nextNode() !== null) {
    const { textContent: text, parentElement: element } = walker.currentNode;
    if (text.trim() === "" || !isSeen(element)) continue;
    texts++;
    const style = getComputedStyle(element);
    const colour = rgba(element.closest("svg") === null ? style.color : style.fill);
    const opacity = ancestors(element).reduce((product, each) => product * Number(getComputedStyle(each).opacity), 1);
    for (const back of backsOf(element)) {
      const contrast = contrastOf(over([...colour.slice(0, 3), colour[3] * opacity], back), back);
      if (contrast >= CONTRAST_MIN) continue;
      low.push({ text: text.trim().slice(0, 40), contrast: Math.round(contrast * 100) / 100, colours: colour + " on " + back });
    }
  }
  return { texts, low };
})()`;
