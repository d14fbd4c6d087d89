/** Lines: the complete lines of a response; an incomplete last line is dropped. */
export async function* linesOf(answer: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of answer) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
