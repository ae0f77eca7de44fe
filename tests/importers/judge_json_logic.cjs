// Reads JSON lines [rule, data] and writes, for each, whether json-logic-js finds the result truthy.
const logic = require(process.argv[2]);
const lines = require("fs").readFileSync(0, "utf8").split("\n").filter((line) => line);
for (const line of lines) {
  const [rule, data] = JSON.parse(line);
  let answer;
  try {
    answer = logic.truthy(logic.apply(rule, data));
  } catch (error) {
    answer = String(error);
  }
  console.log(JSON.stringify(answer));
}
