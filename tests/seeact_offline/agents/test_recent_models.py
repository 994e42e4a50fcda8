"""Replies in the formats that models of 2025 and 2026 document, read by the agent that speaks them; sources stand in the records."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pytest

from seeact_offline.agents import AGENTS, GROUNDERS, GUI_MODELS, Answer, Unreadable, find_agent, gui_model
from seeact_offline.agents.screens import Shown
from seeact_offline.records import InputError, StepKey
from seeact_offline.replies import parse_grounding_reply
from seeact_offline.replies.answer_text import without_thoughts
from seeact_offline.replies.next_action import parse_next_action
from seeact_offline.replies.points import read_point
from seeact_offline.trajectories.verdict_rules import read_verdict
from tests.right_answers import right_replies

PAGE = Shown.whole((1000, 1000))


def read(agent: str, text: str) -> tuple[Any, ...]:
    """Kind, place and text of each act; the name of the failure for none."""
    try:
        return tuple((act.kind, act.place, act.text) for act in find_agent(agent)[0].read(text))
    except Unreadable as error:
        return (error.name,)


@pytest.mark.parametrize(
    ("agent", "text", "expected"),
    [
        ('qwen3.5', '<think>\nI should click\n<tool_call>\n<function=computer_use>\n<parameter=action>\nleft_click\n</parameter>\n<parameter=coordinate>\n[500, 300]\n</parameter>\n</function>\n</tool_call>', (('click', (500.0, 300.0), None),)),
        ('qwen3.5', '<tool_call><function=computer_use><parameter=action>type</parameter><parameter=text>hello [1]</parameter></function></tool_call>', (('type', None, 'hello [1]'),)),
        ('qwen3.5', '<tool_call>\n<function=computer_use>\n<parameter=action>left_click</parameter>\n<parameter=coordinate>[500,300]</parameter>', (('click', (500.0, 300.0), None),)),
        ('uitars-2', '<gui_think>click(1,2)</gui_think><seed:tool_call><function=click><parameter=point><point>500 300</point></parameter></function></seed:tool_call>', (('click', (500.0, 300.0), None),)),
        ('uitars-2', '<think_never_used_51bce0c785ca2f68081bfa7d91973934>x</think_never_used_51bce0c785ca2f68081bfa7d91973934>\n<seed:tool_call>\n<function=type>\n<parameter=content>abc\\n</parameter>\n</function>\n</seed:tool_call>', (('type', None, 'abc'),)),
        ('uitars-2', '<seed:tool_call><function=finished><parameter=content>done</parameter></function></seed:tool_call>', (('stop', None, 'done'),)),
        ('mai-ui', '<thinking>\nhm\n</thinking>\n<tool_call>\n{"name": "mobile_use", "arguments": {"action": "click", "coordinate": [500, 300]}}\n</tool_call>', (('click', (500.0, 300.0), None),)),
        ('mai-ui', '<thinking>hm</thinking><tool_call>{"name":"mobile_use","arguments":{"action":"swipe","direction":"up","coordinate":[1,2]}}</tool_call>', (('scroll', (1.0, 2.0), None),)),
        ('mai-ui', '<tool_call>{"name":"mobile_use","arguments":{"action":"system_button","button":"back"}}</tool_call>', (('back', None, 'back'),)),
        ('mai-ui', '<tool_call>{"name":"mobile_use","arguments":{"action":"long_press","coordinate":[500,300]}}</tool_call>', (('click', (500.0, 300.0), None),)),
        ('mai-ui', '<grounding_think>x</grounding_think>\n<answer>\n{"coordinate": [500, 300]}\n</answer>', (('click', (500.0, 300.0), None),)),
        ('fara', 'I will.\n<tool_call>\n{"name": "computer_use", "arguments": {"action": "type", "coordinate": [500, 300], "text": "abc", "press_enter": true, "delete_existing_text": true}}\n</tool_call>', (('type', (500.0, 300.0), 'abc'),)),
        ('fara', '<tool_call>{"name":"computer_use","arguments":{"action":"visit_url","url":"https://x.y"}}</tool_call>', (('goto', None, 'https://x.y'),)),
        ('fara', '<tool_call>{"name":"computer_use","arguments":{"action":"pause_and_memorize_fact","fact":"x"}}</tool_call>', (('wait', None, None),)),
        ('fara', '<tool_call>{"name":"computer_use","arguments":{"action":"input_text","coordinate":[500,300],"text":"abc"}}</tool_call>', (('type', (500.0, 300.0), 'abc'),)),
        ('fara-1.5', '<tool_call>\n{"name": "computer_use", "arguments": {"action": "read_page_answer_question", "question": "x"}}\n</tool_call>', (('wait', None, None),)),
        ('fara-1.5', '<tool_call>\n{"name": "computer_use", "arguments": {"action": "ask_user_question", "question": "x"}}\n</tool_call>', (('stop', None, None),)),
        ('anthropic', '[{"type": "tool_use", "name": "form_input", "input": {"ref": "ref_1", "value": "x"}}]', ('no_marks',)),
        ('anthropic', '[{"type": "tool_use", "name": "read_page", "input": {"filter": "interactive"}}]', (('wait', None, None),)),
        ('anthropic', '[{"type": "tool_use", "name": "find", "input": {"query": "search bar"}}]', (('wait', None, 'search bar'),)),
        ('qwen3-vl', '{"action": [{"select_dropdown": {"index": 3, "text": "x"}}]}', ('no_marks',)),
        ('molmo2', '<points coords="1 1 500 300 2 173 600">the fields</points>', ('several',)),
        ('glm-4.5v', "Memory: []\nI'll click (somewhere).\n<|begin_of_box|>left_click(start_box='[500,300]', element_info='Button')<|end_of_box|>\nMemory:\n[]", (('click', (500.0, 300.0), None),)),
        ('glm-4.5v', "<|begin_of_box|>type(content='abc, def')<|end_of_box|>", (('type', None, 'abc, def'),)),
        ('glm-4.5v', "<|begin_of_box|>left_double_click(start_box='[500,300]', element_info='')<|end_of_box|>", (('double', (500.0, 300.0), None),)),
        ('glm-4.5v', '<|begin_of_box|>DONE()<|end_of_box|>', (('stop', None, None),)),
        ('glm-4.5v', '<|begin_of_box|>[[400,200,600,400]]<|end_of_box|>', (('click', (400.0, 200.0, 600.0, 400.0), None),)),
        ('glm-4.5v', '<think>x</think><answer>{"action_type": "click", "box_2d": [[400, 200, 600, 400]]}</answer>', (('click', (400.0, 200.0, 600.0, 400.0), None),)),
        ('glm-4.5v', '{"action_type": "type", "text": "abc", "box_2d": [[400,200,600,400]]}', (('type', (400.0, 200.0, 600.0, 400.0), 'abc'),)),
        ('glm-4.5v', '{"action_type": "status", "goal_status": "complete"}', (('stop', None, None),)),
        ('glm-4.5v', '{"action_type": "navigate_back"}', (('back', None, None),)),
        ('gui-owl', '<tool_call>\n{"name": "browser_use", "arguments": {"action": "click", "label": 7}}\n</tool_call>', ('no_marks',)),
        ('gui-owl', '<tool_call>\n{"name": "browser_use", "arguments": {"action": "type", "label": 7, "text": "abc"}}\n</tool_call>', ('no_marks',)),
        ('ui-venus', '<think>hm Click(box=(1,1))</think>\n<action>Click(box=(500, 300))</action>\n<conclusion>Clicked the button</conclusion>', (('click', (500.0, 300.0), None),)),
        ('ui-venus', "<think>hm</think><action>Type(content='abc')</action><conclusion>c</conclusion>", (('type', None, 'abc'),)),
        ('ui-venus', '<action>PressEnter()</action>', (('press', None, None),)),
        ('ui-venus', '<action>PressBack()</action>', (('back', None, None),)),
        ('ui-venus', '[500, 300]', (('click', (500.0, 300.0), None),)),
        ('ui-venus', "<action>Scroll(start=(500,500), end=(500,100), direction='down')</action>", (('scroll', (500.0, 500.0), None),)),
        ('ui-venus', "<action>Finished(content='ok')</action>", (('stop', None, 'ok'),)),
        ('holo2', '{"x": 500, "y": 300}', (('click', (500.0, 300.0), None),)),
        ('holo2', '{"note":"","thought":"t","action":{"action":"click_element_abs","element":"the button","x":500,"y":300}}', (('click', (500.0, 300.0), None),)),
        ('holo2', '{"thought":"t","action":{"action":"write_element_abs","element":"box","content":"abc","x":500,"y":300}}', (('type', (500.0, 300.0), 'abc'),)),
        ('holo2', '{"thought":"t","action":{"action":"refresh"}}', (('goto', None, None),)),
        ('holo1.5', '{"action":"TYPE","x":500,"y":300,"text":"abc"}', (('type', (500.0, 300.0), 'abc'),)),
        ('holo1.5', '{"action":"frobnicate","x":500,"y":300}', ('unknown_act',)),
        ('evocua', '```python\npyautogui.click(x=500, y=300)\n```', (('click', (500.0, 300.0), None),)),
        ('evocua-s1', '# Step 1:\n## Action:\nClick\n## Code:\n```python\npyautogui.click(x=500, y=300)\n```', (('click', (500.0, 300.0), None),)),
        ('evocua', '<tool_call>\n{"name": "computer_use", "arguments": {"action": "key_down", "keys": ["ctrl"]}}\n</tool_call>', (('press', None, 'ctrl'),)),
        ('kimi-vl', '◁think▷pyautogui.click(x=0.1,y=0.1)◁/think▷pyautogui.click(x=0.5, y=0.3)', (('click', (0.5, 0.3), None),)),
        ('kimi-vl', "pyautogui.write(message='abc')", (('type', None, 'abc'),)),
        ('cogagent', "Action: click the button\nGrounded Operation: CLICK(box=[[400,200,600,400]], element_type='button', element_info='Go')\n<<敏感操作>>", (('click', (400.0, 200.0, 600.0, 400.0), None),)),
        ('cogagent', "Grounded Operation: TYPE(box=[[400,200,600,400]], text='abc', element_type='input', element_info='q')", (('type', (400.0, 200.0, 600.0, 400.0), 'abc'),)),
        ('cogagent', "Grounded Operation: KEY_PRESS(key='Enter')", (('press', None, 'Enter'),)),
        ('cogagent', 'Grounded Operation: END()', (('stop', None, None),)),
        ('cogagent', 'Grounded Operation: SCROLL_DOWN(box=[[0,0,999,999]], step_count=5)', (('scroll', (0.0, 0.0, 999.0, 999.0), None),)),
        ('gelab', '<THINK>x</THINK>\nexplain:click it\taction:CLICK\tpoint:500,300\tsummary:ok', (('click', (500.0, 300.0), None),)),
        ('gelab', 'explain:t\taction:TYPE\tvalue:abc def\tpoint:500,300\tis_keyboard:true\tsummary:s', (('type', (500.0, 300.0), 'abc def'),)),
        ('gelab', 'explain:t\taction:COMPLETE\treturn:done\tsummary:s', (('stop', None, None),)),
        ('agentcpm-gui', '{"thought":"t","POINT":[500,300]}', (('click', (500.0, 300.0), None),)),
        ('agentcpm-gui', '{"POINT":[500,300],"to":"down"}', (('scroll', (500.0, 300.0), None),)),
        ('agentcpm-gui', '{"TYPE":"abc"}', (('type', None, 'abc'),)),
        ('agentcpm-gui', '{"PRESS":"BACK"}', (('back', None, 'back'),)),
        ('agentcpm-gui', '{"STATUS":"finish"}', (('stop', None, 'finish'),)),
        ('seed1.5-vl', "Thought: t\nAction: click(point='<point>500 300</point>')", (('click', (500.0, 300.0), None),)),
        ('seed1.5-vl', "Thought: t\nAction: click(start_box='<bbox>400 200 600 400</bbox>')", (('click', (400.0, 200.0, 600.0, 400.0), None),)),
        ('anthropic', '[{"type":"tool_use","name":"computer","input":{"action":"left_mouse_down","coordinate":[500,300]}}]', (('drag', (500.0, 300.0), None),)),
        ('anthropic', '<invoke name="computer">\n<parameter name="action">left_click</parameter>\n<parameter name="coordinate">[500, 300]</parameter>\n</invoke>', (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', '<tool_call>computer_use\n<arg_key>action</arg_key>\n<arg_value>left_click</arg_value>\n<arg_key>coordinate</arg_key>\n<arg_value>[500, 300]</arg_value>\n</tool_call>', (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', '```json\n{"action": "left_click", "coordinate": [500, 300]}\n```', (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', '{"action":[{"click_element":{"index":3}}]}', ('no_marks',)),
        ('qwen3-vl', '{"point_2d": [500, 300], "label": "Search"}', (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', 'click(500, 300)', (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', 'Action: left_click\nCoordinate: [500, 300]', (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', 'I would click the button.', ('no_act',)),
        ('qwen3-vl', '<tool_call>{"name":"computer_use","arguments":{"action":"dance","coordinate":[1,2]}}</tool_call>', ('unknown_act',)),
        ('qwen3-vl', '<tool_call>{"name":"computer_use","arguments":{"action":"left_click","coordinate":{"x":500,"y":300}}}</tool_call>', (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', '[{"bbox_2d": [400,200,600,400], "label": "a"}]', (('click', (400.0, 200.0, 600.0, 400.0), None),)),
        ('uitars', '<|box_start|>(500,300)<|box_end|>', (('click', (500.0, 300.0), None),)),
        ('uitars', "click(start_box='<|box_start|>(500,300)<|box_end|>')", (('click', (500.0, 300.0), None),)),
        ('qwen2.5-vl', '[{"bbox_2d": [400,200,600,400], "label": "a"}]', (('click', (400.0, 200.0, 600.0, 400.0), None),)),
        # other notations that have been seen, and prose
        ('openai', '{"tool_calls":[{"type":"function","function":{"name":"computer_use","arguments":"{\\"action\\":\\"left_click\\",\\"coordinate\\":[500,300]}"}}]}', (('click', (500.0, 300.0), None),)),
        ('openai', '{"type":"computer_call","action":{"type":"keypress","keys":["ENTER"]}}', (('press', None, 'ENTER'),)),
        ('openai', '{"type":"computer_call","action":{"type":"drag","path":[{"x":1,"y":2},{"x":3,"y":4}]}}', (('drag', None, None),)),
        ('gemini', '{"function_call": {"name":"type_text_at","args":{"x":500,"y":300,"text":"abc","press_enter":true}}}', (('type', (500.0, 300.0), 'abc'),)),
        ('qwen3-vl', '{"ACTION": "CLICK", "MARK": 7, "VALUE": "None", "COORDINATE": [500,300]}', (('click', (500.0, 300.0), None),)),
        ('aguvis', 'mobile.home()', (('goto', None, None),)),
        ('aguvis', "answer('blue')", (('answer', None, 'blue'),)),
        ('aguvis', "terminate(status='success')", (('stop', None, 'success'),)),
        ('qwen3-vl', "<think>x</think><answer>[{'action': 'click', 'point': [500, 300], 'input_text': 'no input text'}]</answer>", (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', "<answer>[{'action': 'type', 'point': [-100, -100], 'input_text': 'abc'}]</answer>", (('type', (-100.0, -100.0), 'abc'),)),
        ('qwen3-vl', 'Action: {"action_type": "click", "x": 500, "y": 300}', (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', 'Action: {"action_type": "click", "index": 5}', ('no_marks',)),
        ('qwen3-vl', '{"action_type": "open_app", "app_name": "x"}', (('goto', None, None),)),
        ('kimi-vl', '<think>t</think><operation>Click it</operation><action>\nclick(x=0.5, y=0.3)\n</action>', (('click', (0.5, 0.3), None),)),
        ('kimi-vl', "<action>\nwrite(message='abc')\n</action>", (('type', None, 'abc'),)),
        ('kimi-vl', "<action>response(answer='x')</action>", (('answer', None, 'x'),)),
        ('holo2', '{"note":null,"thought":"t","tool_call":{"tool_name":"click_element","element":"the button","x":500,"y":300}}', (('click', (500.0, 300.0), None),)),
        ('holo2', '{"thought":"t","tool_call":{"tool_name":"write_element_abs","element":"e","content":"abc","x":500,"y":300}}', (('type', (500.0, 300.0), 'abc'),)),
        ('qwen3-vl', '{"name":"browser_click","arguments":{"element":"the button","ref":"e12"}}', ('no_marks',)),
        ('qwen3-vl', '{"name":"click","arguments":{"target_id":"12"}}', ('no_marks',)),
        ('qwen3-vl', '<think>t</think><answer>do(action="Tap", element=[500,300])</answer>', (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', 'do(action="Type", text="abc")', (('type', None, 'abc'),)),
        ('qwen3-vl', 'finish(message="done")', (('stop', None, 'done'),)),
        ('qwen3-vl', 'do(action="Launch", app="x")', (('goto', None, 'x'),)),
        ('cogagent', 'Next Action: click\nGrounded Operation:[link] Flights -> CLICK at the box [[394,202,454,240]]', (('click', (394.0, 202.0, 454.0, 240.0), None),)),
        ('cogagent', 'Grounded Operation:[combobox] Search -> TYPE: abc at the box [[394,202,454,240]]', (('type', (394.0, 202.0, 454.0, 240.0), 'abc'),)),
        ('qwen3-vl', 'Action: CLICK [500, 300]', (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', 'Action: click at (500, 300)', (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', '**Action:** click(500, 300)', (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', '{"Action": "click", "Coordinate": [500, 300]}', (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', '{"action":"click","target":[500,300]}', (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', '{"action":"click","target":"Button 2 of 3"}', (('click', None, None),)),
        ('qwen3-vl', '{"action":"click","x1":400,"y1":200,"x2":600,"y2":400}', (('click', (400.0, 200.0, 600.0, 400.0), None),)),
        ('qwen3-vl', 'click([500,300])', (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', '<click x="500" y="300"/>', (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', '<action type="click" x="500" y="300"/>', (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', '<point x="500" y="300">a</point>', (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', '<|channel|>analysis<|message|>{"action":"left_click","coordinate":[1,1]}<|end|><|start|>assistant<|channel|>commentary to=functions.computer_use <|constrain|>json<|message|>{"action":"left_click","coordinate":[500,300]}<|call|>', (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', 'Thought: I should type.\nAction: computer_use\nAction Input: {"action": "type", "text": "abc"}', (('type', None, 'abc'),)),
        ('qwen3-vl', 'functions.computer_use:0 <|tool_call_argument_begin|>{"action":"left_click","coordinate":[500,300]}<|tool_call_end|>', (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', "I'll wait. The page (500, 300) is nice.", ('no_act',)),
        ('qwen3-vl', 'Click the blue button at (500, 300).', ('no_act',)),
        ('qwen3-vl', 'Search for flights (cheap).', ('no_act',)),
        ('qwen3-vl', 'action: click\ncoordinate: [500, 300]', (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', 'The action type: none', ('no_act',)),
        ('qwen3-vl', 'Answer: 5', ('no_act',)),
        ('qwen3-vl', 'TYPE abc', (('type', None, 'abc'),)),
        ('uitars', "Thought: x\nAction: long_press(start_box='(500,300)')", (('click', (500.0, 300.0), None),)),
        ('uitars', "Action: open_app(app_name='x')", (('goto', None, None),)),
        ('uitars', 'Action: press_back()', (('back', None, None),)),
        ('uitars', "Action: hotkey(key='ctrl c')", (('press', None, 'ctrl c'),)),
        ('uitars', "Action: frob(start_box='(1,2)')", ('unknown_act',)),
        ('qwen3-vl', '{"type":"abc"}', ('no_act',)),
        ('qwen3-vl', '{"name":"Vienna","type":"city"}', ('no_act',)),
        ('agentcpm-gui', '{"thought":"","TYPE":"search"}', (('type', None, 'search'),)),
        ('agentcpm-gui', '{"POINT":[500,300],"duration":1000}', (('click', (500.0, 300.0), None),)),
        # prose and thoughts around a call, texts as they are written, replies that are cut short
        ('qwen3.5', '<tool_call>\n<function=computer_use>\n<parameter=action>\ntype\n</parameter>\n<parameter=text>\n[1, 2]\n</parameter>\n</function>\n</tool_call>', (('type', None, '[1, 2]'),)),
        ('qwen3.5', '<tool_call>\n<function=computer_use>\n<parameter=action>\ntype\n</parameter>\n<parameter=text>\n(555)\n</parameter>\n</function>\n</tool_call>', (('type', None, '(555)'),)),
        ('glm-4.5v', '<tool_call>type\n<arg_key>content</arg_key>\n<arg_value>a < b</arg_value>\n</tool_call>', (('type', None, 'a < b'),)),
        ('qwen3-vl', '<function=click>{"x": 500, "y": 300}</function>', (('click', (500.0, 300.0), None),)),
        ('kimi-vl', '<|tool_call_begin|>functions.type:1<|tool_call_argument_begin|>{"text": "abc"}<|tool_call_end|>', (('type', None, 'abc'),)),
        ('qwen3-vl', '<|channel|>commentary to=functions.type_text <|constrain|>json<|message|>{"text":"abc"}<|call|>', (('type', None, 'abc'),)),
        ('qwen3-vl', '<|tool_call_begin|>functions.frob:0<|tool_call_argument_begin|>{"x": 500, "y": 300}<|tool_call_end|>', ('unknown_act',)),
        ('qwen3-vl', 'For example {"action": "left_click", "coordinate": [1, 1]} would be wrong.\n<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [500, 300]}}\n</tool_call>', (('click', (500.0, 300.0), None),)),
        ('evocua-s1', '## Thought:\npyautogui.click(x=1, y=1)?\n## Code:\n```python\npyautogui.click(x=500, y=300)\npyautogui.write(message="it\'s")\n```', (('click', (500.0, 300.0), None), ('type', None, "it's"))),
        ('cogagent', "Action: Type (the name).\nGrounded Operation: TYPE(box=[[400,200,600,400]], text='it's', element_info='')\n<<一般操作>>", (('type', (400.0, 200.0, 600.0, 400.0), "it's"),)),
        ('ui-venus', "<action>Click(box=(500, 300))</action>\n<action>Type(content='abc')</action>", (('click', (500.0, 300.0), None), ('type', None, 'abc'))),
        ('glm-4.5v', "Action: click (the box).\nleft_click(start_box='[500,300]', element_info='')", (('click', (500.0, 300.0), None),)),
        ('gelab', '<THINK>unfinished\nexplain:x\taction:CLICK\tpoint:500,300\tsummary:s', (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', '<tool_call>\n{"name": "computer_use", "arguments": {"Action": "left_click", "Coordinate": [500, 300]}}\n</tool_call>', (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', '<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [[400, 200], [600, 400]]}}\n</tool_call>', (('click', (400.0, 200.0, 600.0, 400.0), None),)),
        ('qwen3-vl', '<tool_call>\n{"name": "computer_use", "arguments": {"action": "click", "position": "row 1, column 2"}}\n</tool_call>', (('click', None, None),)),
        ('qwen3-vl', 'Action: Click button 2 of 3', ('no_act',)),
        ('qwen3-vl', 'CLICK [500, 300]\nTYPE "it\'s [x]"', (('click', (500.0, 300.0), None), ('type', None, "it's [x]"))),
        ('qwen3-vl', '<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [500, 30', (('click', None, None),)),
        ('uitars', "Action: click(start_box='<|box_start|>(500,30", (('click', None, None),)),
        ('cogagent', 'Grounded Operation: CLICK(box=[[400,200,', (('click', None, None),)),
        ('qwen3.5', '<tool_call>\n<function=computer_use>\n<parameter=action>\nleft_click\n</parameter>\n<parameter=coordinate>\n500, 3', (('click', None, None),)),
        ('molmo', '<point x="50.0" y="3', ('no_act',)),
        ('seed1.5-vl', '<bbox>400 200 6', ('no_act',)),
        ('qwen3-vl', '{"action":[{"click":{"coordinate_x":500,"coordinate_y":300}}]}', (('click', (500.0, 300.0), None),)),
        ('qwen3-vl', '{"action":[{"input":{"index":3,"text":"abc","clear":true}}]}', ('no_marks',)),
        ('qwen3-vl', '{"action":[{"extract":{"query":"x"}}]}', ('unknown_act',)),
        ('openai', '{"type": "computer_call", "action": {"type": "frob", "x": 500, "y": 300}}', ('unknown_act',)),
        ('holo2', '{"thought":"t","tool_call":{"tool_name":"frob","x":500,"y":300}}', ('unknown_act',)),
        ('holo2', '{"thought":"t","action":{"frob":{"x":500,"y":300}}}', ('unknown_act',)),
        ('jedi', '{"name":"computer_use","arguments":{"action":"frob","coordinate":[500,300]}}', ('unknown_act',)),
        ('openai', '{"content": [{"type": "text", "text": "The page (3, 4) is done."}]}', ('no_act',)),
        ('internvl', '<ref>item [1, 2]</ref><box>[[400, 200, 600, 400]]</box>', (('click', (400.0, 200.0, 600.0, 400.0), None),)),
        ('gemini', '```json\n[{"box_2d": [200, 400, 400, 600], "label": "x"}]\n```', (('click', (400.0, 200.0, 600.0, 400.0), None),)),
        ('gemini', '[{"point": [300, 500], "label": "x"}]', (('click', (500.0, 300.0), None),)),
        ('mai-ui', '<tool_call>\n{"name": "mobile_use", "arguments": {"action": "ask_user", "text": "abc"}}\n</tool_call>', (('stop', None, 'abc'),)),
        ('qwen3-vl', 'do(action="Type_Name", text="abc")', (('type', None, 'abc'),)),
    ],
)  # fmt: skip
def test_a_documented_reply_is_read(agent: str, text: str, expected: tuple[Any, ...]) -> None:
    assert read(agent, text) == expected


@pytest.mark.parametrize(
    ("grounder", "reply"),
    [
        ("gta1", "(504, 308)"),
        ("gelato", "The point is (512, 320)"),
        ("ui-ins", "[504, 308]"),
        ("infigui-g1", '<think>x</think>```json\n[{"point_2d": [504, 308], "label": "x"}]\n```'),
        ("qwen2.5-vl", '```json\n[{"bbox_2d": [404, 208, 604, 408], "label": "x"}]\n```'),
        ("uitars-1.5", "<|box_start|>(504,308)<|box_end|>"),
        ("molmo", '<point x="50.0" y="30.555555" alt="a">a</point>'),
        ("molmo2", '<points coords="1 1 500 305.55555" alt="a">a</points>'),
        ("gemini-point", '```json\n[{"point": [305.55555, 500], "label": "x"}]\n```'),
        ("gemini-point", '[{"box_2d": [205.55555, 400, 405.55555, 600], "label": "x"}]'),
        ("nova-act", 'think("The field is there.");\nagentClick("<box>208,404,408,604</box>");'),
        ("pxyx/exact(500,1000):jedi", '{"action": "click", "coordinate": [305.55555, 250]}'),
        ("internvl", "<ref>a</ref><box>[[400, 205.55555, 600, 405.55555]]</box>"),
        ("jedi", '<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [504, 308]}}\n</tool_call>'),
        ("px/smart(28):point", "(504,308)"),
        ("1:list", "[0.5, 0.30555555]"),
        ("1000:point_2d", '{"point_2d": [500, 305.55555]}'),
    ],
)  # fmt: skip
def test_a_grounder_is_right_by_its_name(grounder: str, reply: str) -> None:
    # a page of 1008 pixels is a multiple of 28, and Gelato's pictures are of 1024
    page = Shown.whole((1024, 1024) if grounder == "gelato" else (1008, 1008))
    agent, _ = find_agent(grounder)
    place = agent.answer(agent.read(reply), page).place
    assert place is not None
    expected = (512, 320) if grounder == "gelato" else (504, 308)
    assert place == pytest.approx(expected, abs=0.01)


WRAPS = (
    "{}", "<think>Is it {} or not?</think>{}", "Is it {}?</think>\n{}", "<THINKING>\n{}\n</THINKING>\n{}", "◁think▷{}◁/think▷{}",
    "<|begin_of_box|>{}<|end_of_box|>", "<answer>\n{}\n</answer>", "```\n{}\n```", "<reasoning>a</reasoning>{}", "<seed:think>{}</seed:think>{}",
)  # fmt: skip


LANGUAGES = [name for name in [*GUI_MODELS, *GROUNDERS] if find_agent(name)[0].grounder is None]
WITH_ANOTHER_ACT = [wrap for wrap in WRAPS if wrap.count("{}") == 2]
ALONE = [wrap for wrap in WRAPS if wrap.count("{}") == 1]
"""Each language is read in one of each kind."""


@pytest.mark.parametrize(("name", "wrap"), [*zip(LANGUAGES, cycle(WITH_ANOTHER_ACT)), *zip(LANGUAGES, cycle(ALONE))])
def test_each_language_is_read_in_a_wrapping(name: str, wrap: str) -> None:
    agent, _ = find_agent(name)
    plain = agent.write("TYPE", "Vienna", (640, 360), PAGE)
    other = agent.write("CLICK", "", (10, 20), PAGE)
    n = wrap.count("{}")
    assert agent.read(wrap.format(*([other] * (n - 1)), plain)) == agent.read(plain)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>a</think>b", "b"),
        ("a</think>b", "b"),
        ("<thinking>a<think>b</think>c</thinking>d", "d"),
        ("<thought>a</think>b", "b"),
        ("<think>a <think> b</think>c", "c"),
        ("[THINK]a[/THINK]b", "b"),
        ("a<think>b</think>c</think>d", "acd"),
        ("<think>unfinished, ELEMENT: A", ""),
        ("<think>so\nELEMENT: A\nACTION: CLICK", "ELEMENT: A\nACTION: CLICK"),
        ("<think>so <tool_call>{}</tool_call>", "<tool_call>{}</tool_call>"),
        ("<think>so <tool_call>{}</tool_call></think>", "<tool_call>{}</tool_call>"),
        ("<conclusion>a</conclusion>", "<conclusion>a</conclusion>"),
    ],
)
def test_thoughts_are_removed(text: str, expected: str) -> None:
    assert without_thoughts(text) == expected


THOUGHT = "<think>ELEMENT: A\nACTION: TYPE\nVALUE: x\nPOINT: 1, 2\nNOT SUCCESS Status: failure</think>"


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (lambda: parse_grounding_reply(f"{THOUGHT}ELEMENT: B\nACTION: CLICK", "choice", 3).choice, 1),
        (lambda: parse_grounding_reply("ELEMENT: <|begin_of_box|>B<|end_of_box|>\nACTION: CLICK", "choice", 3).choice, 1),
        (lambda: parse_grounding_reply("<|begin_of_box|>ELEMENT: B\nACTION: CLICK<|end_of_box|>", "choice", 3).choice, 1),
        (lambda: parse_grounding_reply(f"ELEMENT: B\nACTION: CLICK\n{THOUGHT}", "choice", 3).choice, 1),
        (lambda: read_point(f"POINT: 3, 4\n{THOUGHT}").numbers, (3, 4)),
        (lambda: read_point("<think>unfinished (1, 2)\nPOINT: 3, 4").numbers, (3, 4)),
        (lambda: read_verdict("<think>unfinished\nStatus: success", "webjudge"), True),
        (lambda: parse_next_action(f"ACTION: CLICK\n{THOUGHT}").op, "CLICK"),
        (lambda: [read_verdict(f"{THOUGHT}SUCCESS", judge) for judge in ("webvoyager", "openwebvoyager", "strict")], [True] * 3),
        (lambda: read_verdict(f"Status: success\n{THOUGHT}", "webjudge"), True),
    ],
)  # fmt: skip
def test_no_reader_sees_thoughts(read: Any, expected: Any) -> None:
    assert read() == expected


def test_only_the_strict_reader_moves_a_place_to_the_edge() -> None:
    agent = AGENTS["holo1.5"]
    acts = agent.read('{"action": "click_absolute", "x": 1200, "y": 250}')
    assert agent.answer(acts, PAGE).failure == "point_outside"
    assert agent.answer(acts, PAGE, strict=True).place == (1000, 500)


GOOD = {"name": "mine", "source": "me", "frame": "1000", "notation": "json"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"frame": "px"}, "needs `resize`"),
        ({"frame": "promille"}, "no frame is called 'promille'"),
        ({"notation": "yaml"}, "no notation is called 'yaml'"),
        ({"resize": "smart"}, "no rule is called 'smart'"),
        ({"resize": "smart(0)"}, "no rule is called 'smart(0)'"),
    ],
)
def test_a_record_that_contradicts_itself_is_one_sentence(change: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match="mine: ") as error:
        gui_model(**(GOOD | change))
    assert said in str(error.value)


@pytest.mark.parametrize("spec", ["px:point", "1000:yaml", "promille:point", "nobody"])
def test_a_grounder_that_does_not_exist_is_refused(spec: str) -> None:
    with pytest.raises(InputError) as error:
        find_agent(spec, "grounder_agent")
    assert error.value.argument == "grounder_agent"


NOTATIONS = (
    "qwen3.5",
    "uitars-2",
    "seed1.5-vl",
    "mai-ui",
    "glm-4.5v",
    "ui-venus",
    "holo2",
    "cogagent",
    "gelab",
    "evocua",
    "gui-owl",
    "agentcpm-gui",
)


def answers(agent: str, replies: dict[StepKey, tuple[Shown, str]]) -> dict[StepKey, Answer]:
    speaker, _ = find_agent(agent)
    return {key: speaker.answer(speaker.read(reply), shown) for key, (shown, reply) in replies.items()}


@pytest.mark.slow
def test_right_answers_are_the_same_in_every_wrapping_and_notation() -> None:
    plain = right_replies("qwen3-vl", "cross_website")
    expected = answers("qwen3-vl", plain)
    assert sum(answer.failure is None for answer in expected.values()) >= len(plain) - 1 > 150
    for wrap in WRAPS[1:]:
        decoys = [AGENTS["qwen3-vl"].write("CLICK", "", (1, 1), PAGE)] * (wrap.count("{}") - 1)
        wrapped = {key: (shown, wrap.format(*decoys, reply)) for key, (shown, reply) in plain.items()}
        assert answers("qwen3-vl", wrapped) == expected, wrap
    for name in NOTATIONS:
        there = right_replies(name, "cross_website")
        # a reader of calls reads them in any notation, its places being thousandths
        for reader in (name, "qwen3-vl"):
            found = answers(reader, there)
            assert {key: (one.op, one.value) for key, one in found.items()} == {
                key: (one.op, one.value) for key, one in expected.items()
            }
            assert {key: one.place for key, one in found.items()} == {
                key: pytest.approx(one.place) for key, one in expected.items()
            }
